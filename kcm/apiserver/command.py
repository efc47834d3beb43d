"""`python -m kcm.apiserver`: its flags, and how they become a server.

Names of flags are kube-apiserver's where it has them.
"""

from __future__ import annotations

from dataclasses import dataclass
from pathlib import Path

import click
import structlog

from kcm import __version__, errors
from kcm.apiserver import credentials, namespaces
from kcm.apiserver.access import Access
from kcm.apiserver.app import ApiServer
from kcm.apiserver.serving import Address, Server, bind, serve, url_of
from kcm.listening import is_loopback_host
from kcm.redisio import RedisIO
from kcm.settings import Settings
from kcm.store import Store

log = structlog.get_logger("kcm.apiserver")


@dataclass(frozen=True)
class Options:
    """What the flags say."""

    address: Address
    anonymous: bool
    tls: bool
    token_file: Path | None
    kubeconfig: Path | None


@click.command()
@click.option("--bind-address", default="127.0.0.1", show_default=True, help="Where to listen.")
@click.option(
    "--port",
    type=click.IntRange(0, 65535),
    default=8001,
    show_default=True,
    help="Port to listen on; 0: any.",
)
@click.option(
    "--anonymous-auth",
    is_flag=True,
    help="Serve requests without a token: everybody on this machine may do everything.",
)
@click.option(
    "--tls/--no-tls",
    default=True,
    show_default=True,
    help="HTTPS with a certificate made at the first start. kubectl sends no token without.",
)
@click.option(
    "--token-file",
    type=click.Path(path_type=Path),
    help="File of the bearer token; made if missing. Default: apiserver-token in the state folder.",
)
@click.option(
    "--kubeconfig",
    type=click.Path(path_type=Path),
    help="Where to write the kubeconfig. Default: kubeconfig in the state folder.",
)
@click.version_option(__version__)
def command(
    *,
    bind_address: str,
    port: int,
    anonymous_auth: bool,
    tls: bool,
    token_file: Path | None,
    kubeconfig: Path | None,
) -> None:
    """Serve the Kubernetes API over the store."""
    address = Address(bind_address, port)
    run(Settings(), Options(address, anonymous_auth, tls, token_file, kubeconfig))


def run(settings: Settings, options: Options) -> None:
    """Serve until a signal. Raises: ConfigurationError, StoreUnavailable."""
    listener = bind(options.address)  # first: a taken port is told before anything is written
    folder = settings.state_dir
    token = credentials.token(options.token_file or folder / "apiserver-token")
    made = credentials.certificate(folder, _hosts(options.address)) if options.tls else None
    io = RedisIO(settings, name="kcm-apiserver")
    try:
        io.attach()
        store = Store(io)
        namespaces.ensure(store)
        access = Access(token, options.anonymous, _is_loopback(options.address))
        app = ApiServer(store, access)
        url = url_of(listener, made)
        path = options.kubeconfig or folder / "kubeconfig"
        credentials.write_kubeconfig(path, url, token, made.certificate if made else None)
        log.info("Serving the Kubernetes API", url=url, kubeconfig=str(path))
        serve(Server(app, made), app, listener)
    finally:
        listener.close()
        io.close()


def _hosts(address: Address) -> tuple[str, ...]:
    return () if address.host in {"0.0.0.0", "::"} else (address.host,)


def _is_loopback(address: Address) -> bool:
    host = f"[{address.host}]" if ":" in address.host else address.host
    return is_loopback_host(host)


def main() -> int:
    """The process: its exit code."""
    try:
        command.main(standalone_mode=False)
    except (errors.ConfigurationError, errors.Temporary) as error:
        click.echo(f"error: {error.message}", err=True)
        return 1
    except click.ClickException as error:
        error.show()
        return error.exit_code
    return 0
