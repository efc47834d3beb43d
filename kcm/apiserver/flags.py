"""Flags that say who gets in, of `kcm apiserver` and of `kcm up`, which passes them on.

They have kube-apiserver's names.
"""

from __future__ import annotations

from pathlib import Path

import click

from kcm.apiserver.auth.authorizer import MODES

anonymous_auth = click.option(
    "--anonymous-auth",
    is_flag=True,
    help="Serve requests without credentials, as user system:anonymous in group "
    "system:unauthenticated. Roles decide what that user may; without any: health and version.",
)
token_auth_file = click.option(
    "--token-auth-file",
    type=click.Path(path_type=Path),
    help='File of more users, read at start; a line is: token,user,uid,"group1,group2".',
)
client_ca_file = click.option(
    "--client-ca-file",
    type=click.Path(path_type=Path),
    help="Certificates of authorities. A client certificate signed by one of them is accepted: "
    "its common name is the user, its organizations are the groups. Needs TLS.",
)
authorization_mode = click.option(
    "--authorization-mode",
    type=click.Choice(MODES),
    default=MODES[0],
    show_default=True,
    help="RBAC: roles and bindings decide. AlwaysAllow: whoever gets in may do everything.",
)
