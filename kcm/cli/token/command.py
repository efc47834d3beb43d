"""The command `kcm token`: bootstrap tokens, with which machines join.

Source: cmd/kubeadm/app/cmd/token.go, Kubernetes 1.33.
"""

from __future__ import annotations

from datetime import UTC, datetime, timedelta
from pathlib import Path

import click

from kcm import errors
from kcm.api.core_v1 import Secret
from kcm.apimachinery.meta_v1 import format_time
from kcm.cli.connect import open_store
from kcm.cli.durations import parse_duration
from kcm.cli.objects.table import TextTable
from kcm.cli.token.joining import join_command
from kcm.helpers import bootstrap_tokens
from kcm.helpers.bootstrap_tokens import NAMESPACE, NODE_TOKEN_GROUP, PREFIX, read_value
from kcm.settings import Settings

_SECRETS = Secret.resource


@click.group()
def token() -> None:
    """Make tokens with which machines join the cluster.

    A token is a Secret in kube-system. Its owner may request the certificate of
    a node, of any name, and nothing else: keep it secret, and let it end soon.

    \b
    Examples:
      kcm token create --print-join-command
      kcm token create --ttl 1h --description "for worker-7"
      kcm token list
      kcm token delete 07401b
    """


@token.command()
@click.argument("value", required=False, metavar="[TOKEN]")
@click.option("--ttl", callback=parse_duration, default="24h", show_default=True,
              help="How long the token is valid; 0s: for ever.")  # fmt: skip
@click.option("--usages", default="signing,authentication", show_default=True,
              help="What it may be used for.")  # fmt: skip
@click.option("--groups", default=NODE_TOKEN_GROUP, show_default=True,
              help="Groups of its user besides system:bootstrappers, with commas.")  # fmt: skip
@click.option("--description", default="", help="What it is for.")
@click.option("--print-join-command", is_flag=True,
              help="Print the commands with which another machine joins, in place of the "
              "token.")  # fmt: skip
@click.option("--server", metavar="URL", default="",
              help="The API server's address as the other machine sees it. Its certificate must "
              "name the host (kcm apiserver --tls-san). Default: that of --kubeconfig.",
              )  # fmt: skip
@click.option("--kubeconfig", type=click.Path(path_type=Path), default=None,
              help="The API server and its certificate, for the join command. Default: kubeconfig "
              "in the state folder.")  # fmt: skip
@click.option("--client-ca-file", type=click.Path(path_type=Path, exists=True), default=None,
              help="The authority of the certificate that the API server shows to kubelets, for "
              "the join command. Default: ca.crt in the state folder, if that exists.")  # fmt: skip
def create(
    *,
    value: str | None,
    ttl: float,
    usages: str,
    groups: str,
    description: str,
    print_join_command: bool,
    server: str,
    kubeconfig: Path | None,
    client_ca_file: Path | None,
) -> None:
    """Create a token, or the TOKEN that is given, and print it."""
    made = value or bootstrap_tokens.generate_token()
    expires = datetime.now(UTC) + timedelta(seconds=ttl) if ttl else None
    try:
        secret = bootstrap_tokens.build_secret(
            made,
            expires=expires,
            usages=_split(usages),
            groups=_split(groups),
            description=description,
        )
    except ValueError as error:
        raise errors.ConfigurationError(str(error)) from None
    printed = made
    if print_join_command:
        folder = Path(Settings().state_dir)
        file, client_ca = kubeconfig or folder / "kubeconfig", client_ca_file or folder / "ca.crt"
        printed = join_command(file, made, server, client_ca=client_ca)
    with open_store() as store:
        store.create(secret)
    click.echo(printed)


@token.command("list")
def list_tokens() -> None:
    """List the tokens. Expired ones stay until tokencleaner or somebody removes them."""
    with open_store() as store:
        listed = store.in_namespace(_SECRETS, NAMESPACE)
    now = datetime.now(UTC)
    rows = [_row(one, now) for one in listed if bootstrap_tokens.is_bootstrap_token(one)]
    table = TextTable(("TOKEN", "TTL", "EXPIRES", "USAGES", "DESCRIPTION", "EXTRA GROUPS"))
    click.echo("\n".join(table.lines(rows)))


def _row(secret: Secret, now: datetime) -> list[str]:
    left = bootstrap_tokens.seconds_left(secret, now)
    if left is None:
        ttl, expires = "<forever>", "<never>"
    else:
        ttl = "<invalid>" if left <= 0 else str(timedelta(seconds=int(left)))
        expires = format_time(now + timedelta(seconds=left)) if left else "<invalid>"
    return [
        f"{read_value(secret, 'token-id')}.{read_value(secret, 'token-secret')}",
        ttl,
        expires,
        ",".join(bootstrap_tokens.read_usages(secret)) or "<none>",
        read_value(secret, "description") or "<none>",
        read_value(secret, "auth-extra-groups") or "<none>",
    ]


@token.command()
@click.argument("values", nargs=-1, required=True, metavar="TOKEN...")
def delete(values: tuple[str, ...]) -> None:
    """Delete tokens, named by their ids (the first six letters) or whole."""
    ids = [_parse_id(value) for value in values]
    with open_store() as store:
        for token_id in ids:
            store.delete(_SECRETS, f"{NAMESPACE}/{PREFIX}{token_id}")
            click.echo(f'bootstrap token "{token_id}" deleted')


def _parse_id(value: str) -> str:
    """Returns the id of a token, which is named by it or whole. Raises ConfigurationError."""
    token_id = bootstrap_tokens.parse_id(value)
    if token_id is None:
        raise errors.ConfigurationError(
            f"{value!r} is neither a token nor its id, which has six of a-z and 0-9"
        )
    return token_id


@token.command()
def generate() -> None:
    """Print a token without creating it, for `kcm token create TOKEN`."""
    click.echo(bootstrap_tokens.generate_token())


def _split(text: str) -> list[str]:
    return [part.strip() for part in text.split(",") if part.strip()]
