"""Flags about authentication and authorization, which `kcm apiserver` and `kcm up` share.

They have the names of kube-apiserver's flags.
"""

from __future__ import annotations

from pathlib import Path

import click

from kcm.apiserver.auth.authorizer import DEFAULT_MODES
from kcm.helpers.serviceaccount.tokens import DEFAULT_ISSUER

EXISTING_FILE = click.Path(path_type=Path, exists=True, dir_okay=False)

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
    metavar="MODE,...",
    default=",".join(DEFAULT_MODES),
    show_default=True,
    help="Who decides about requests, asked in this order. Node: nodes may do what their pods "
    "need. RBAC: roles and bindings decide. AlwaysAllow: all users may do everything. AlwaysDeny: "
    "only system:masters may do anything.",
)
feature_gates = click.option(
    "--feature-gates",
    metavar="NAME=true|false,...",
    default="",
    help="Feature gates of Kubernetes. kcm acts on one, and refuses the others by name. "
    "AuthorizePodWebsocketUpgradeCreatePermission (true): exec, "
    "attach and port-forward by WebSocket need the verb create as well as get.",
)
admission_control_config_file = click.option(
    "--admission-control-config-file",
    type=click.Path(path_type=Path),
    help="File of kind AdmissionConfiguration. It names the kubeconfigs with the tokens and "
    "certificates by which the server identifies itself to webhooks.",
)
service_account_key_file = click.option(
    "--service-account-key-file",
    "service_account_key_files",
    type=click.Path(path_type=Path),
    multiple=True,
    help="File of PEM-encoded keys, public or private, of RSA or ECDSA, by which service account "
    "tokens are verified. May be given several times. Default: that of "
    "--service-account-signing-key-file.",
)
service_account_signing_key_file = click.option(
    "--service-account-signing-key-file",
    type=click.Path(path_type=Path),
    help="File of the private key that signs service account tokens. Default: sa.key in the "
    "state folder, generated if missing.",
)
service_account_issuer = click.option(
    "--service-account-issuer",
    "service_account_issuers",
    multiple=True,
    help="Identifier of the issuer of service account tokens. The first one is in new tokens, "
    f"further ones are accepted, too. Default: {DEFAULT_ISSUER}.",
)
service_account_jwks_uri = click.option(
    "--service-account-jwks-uri",
    default="",
    help="URI of the tokens' keys in /.well-known/openid-configuration. Default: that of this "
    "server; where it listens on all addresses, by the first --tls-san.",
)
api_audiences = click.option(
    "--api-audiences",
    default="",
    help="Identifiers of this API, with commas between them. Tokens must be for one of them. "
    "Default: the first issuer.",
)
service_account_max_token_expiration = click.option(
    "--service-account-max-token-expiration",
    default="0s",
    show_default=True,
    help="The longest validity of tokens of the token request API. Requests for more get this "
    "much. 0s: no limit.",
)
service_account_extend_token_expiration = click.option(
    "--service-account-extend-token-expiration",
    type=bool,
    default=True,
    show_default=True,
    help="Let tokens that admission mounts into pods be valid for a year, for clients that do not "
    "read them again.",
)
