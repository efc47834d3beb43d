"""Flags about authentication and authorization, which `kcm apiserver` and `kcm up` share.

They have the names of kube-apiserver's flags.
"""

from __future__ import annotations

from pathlib import Path

import click

from kcm.apiserver.auth.authorizer import MODES

anonymous_auth = click.option(
    "--anonymous-auth",
    is_flag=True,
    help="Serve requests without credentials, as user system:anonymous in group "
    "system:unauthenticated. Roles decide what that user may do; without any, only health "
    "and version.",
)
token_auth_file = click.option(
    "--token-auth-file",
    type=click.Path(path_type=Path),
    help='File of further users, read at the start. Each line: token,user,uid,"group1,group2".',
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
    help="RBAC: roles and bindings decide. AlwaysAllow: all users may do everything.",
)
