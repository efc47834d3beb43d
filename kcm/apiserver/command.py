"""The command `python -m kcm.apiserver`: its flags, and the server that they configure.

Flags have the names of kube-apiserver's flags where it has them.
"""

from __future__ import annotations

import socket
import ssl
from contextlib import closing
from dataclasses import dataclass, field, replace
from pathlib import Path
from typing import Any

import click
import structlog

from kcm import __version__, errors, logs
from kcm.apiserver import credentials, flags
from kcm.apiserver.admission_config import load_admission_config
from kcm.apiserver.aggregation.options import AggregationFlags, add_aggregation_flags
from kcm.apiserver.app import ApiServer
from kcm.apiserver.auth import tokenfile
from kcm.apiserver.auth.access import AccessRules
from kcm.apiserver.auth.authorizer import DEFAULT_MODES, ROLES, parse_modes
from kcm.apiserver.auth.certificates import check_authorities
from kcm.apiserver.auth.service_accounts import TokenOptions
from kcm.apiserver.bootstrap.cluster import ClusterBootstrap
from kcm.apiserver.bootstrap.kubernetes_service import KubernetesService
from kcm.apiserver.credentials import Certificate
from kcm.apiserver.http.limits import Limits
from kcm.apiserver.nodes.kubelet import KubeletClient
from kcm.apiserver.serving import Address, ApiHttpServer, bind, serve, url_of
from kcm.apiserver.token_options import TokenFlags, add_token_flags
from kcm.http.listening import is_loopback_host
from kcm.redisio.pipelining import PipelinedIO
from kcm.settings import Settings
from kcm.store import Store

log = structlog.get_logger("kcm.apiserver")

_LIMITS = Limits()  # the defaults


@dataclass(frozen=True)
class ServerOptions:
    """The values of the command's flags."""

    address: Address
    anonymous: bool
    tls: bool
    token_file: Path | None
    kubeconfig: Path | None
    token_auth_file: Path | None = None
    client_ca_file: Path | None = None
    modes: tuple[str, ...] = DEFAULT_MODES
    limits: Limits = field(default_factory=Limits)
    kubelet_authority: Path | None = None
    kubelet_client: Certificate | None = None  # what the server presents to kubelets
    cluster_authority: bool = False
    local_storage_class: bool = False
    bootstrap_tokens: bool = False
    admission_config: Path | None = None
    names: tuple[str, ...] = ()  # further names and addresses for the certificate
    tokens: TokenFlags = field(default_factory=TokenFlags)
    aggregation: AggregationFlags = field(default_factory=AggregationFlags)


@click.command()
@click.option(
    "--bind-address", default="127.0.0.1", show_default=True, help="Address to listen on."
)
@click.option(
    "--port",
    type=click.IntRange(0, 65535),
    default=8001,
    show_default=True,
    help="Port to listen on; 0: any free port.",
)
@flags.anonymous_auth
@click.option(
    "--tls/--no-tls",
    default=True,
    show_default=True,
    help="Serve HTTPS, with a certificate that is generated at the first start. kubectl sends "
    "tokens over HTTPS only.",
)
@click.option(
    "--tls-san",
    "names",
    multiple=True,
    help="A further name or address of the server, for the generated certificate. "
    "May be given several times.",
)
@click.option(
    "--token-file",
    type=click.Path(path_type=Path),
    help="File of the administrator's bearer token; generated if missing. Default: apiserver-token "
    "in the state folder.",
)
@flags.token_auth_file
@flags.client_ca_file
@flags.authorization_mode
@flags.admission_control_config_file
@add_token_flags
@add_aggregation_flags
@click.option(
    "--max-requests-inflight",
    type=click.IntRange(0),
    default=_LIMITS.max_requests_inflight,
    show_default=True,
    help="The most requests that read in flight at a time, watches excluded; others get 429. "
    "0: no limit.",
)
@click.option(
    "--max-mutating-requests-inflight",
    type=click.IntRange(0),
    default=_LIMITS.max_mutating_requests_inflight,
    show_default=True,
    help="The most mutating requests in flight at a time; others get 429. 0: no limit.",
)
@click.option(
    "--request-timeout",
    type=click.FloatRange(0),
    default=_LIMITS.request_timeout,
    show_default=True,
    help="Seconds after which a request gets 504, watches excluded. 0: no limit.",
)
@click.option(
    "--kubeconfig",
    type=click.Path(path_type=Path),
    help="Where to write the kubeconfig. Default: kubeconfig in the state folder.",
)
@click.option(
    "--kubelet-certificate-authority",
    type=click.Path(path_type=Path, exists=True, dir_okay=False),
    help="File of the authority that signed the kubelets' certificates. Without it, "
    "requests to kubelets use plain HTTP.",
)
@click.option(
    "--kubelet-client-certificate",
    type=click.Path(path_type=Path, exists=True, dir_okay=False),
    help="File of the client certificate for requests to kubelets. With it, only kubelets that "
    "serve TLS are reached over TLS, others over plain HTTP.",
)
@click.option(
    "--kubelet-client-key",
    type=click.Path(path_type=Path, exists=True, dir_okay=False),
    help="File of that certificate's key.",
)
@click.option(
    "--cluster-authority",
    is_flag=True,
    help="Have a certificate authority in the state folder, ca.crt and ca.key, generated if "
    "missing: accept the client certificates that it signed, and show kubelets one. Have a "
    "front proxy's certificate for other API servers as well. Needs TLS.",
)
@click.option(
    "--local-storage-class",
    is_flag=True,
    help="Have a StorageClass `local`, the default, whose volumes are folders on nodes.",
)
@click.option(
    "--enable-bootstrap-token-auth",
    is_flag=True,
    help="Accept bootstrap tokens: Secrets of type bootstrap.kubernetes.io/token in kube-system.",
)
@click.version_option(__version__)
def command(
    *,
    bind_address: str,
    port: int,
    anonymous_auth: bool,
    tls: bool,
    names: tuple[str, ...],
    token_file: Path | None,
    kubeconfig: Path | None,
    token_auth_file: Path | None,
    client_ca_file: Path | None,
    authorization_mode: str,
    admission_control_config_file: Path | None,
    max_requests_inflight: int,
    max_mutating_requests_inflight: int,
    request_timeout: float,
    kubelet_certificate_authority: Path | None,
    kubelet_client_certificate: Path | None,
    kubelet_client_key: Path | None,
    cluster_authority: bool,
    local_storage_class: bool,
    enable_bootstrap_token_auth: bool,
    **other_flags: Any,
) -> None:
    """Serve the Kubernetes API over the store."""
    if (client_ca_file or cluster_authority) and not tls:
        flag = "--client-ca-file" if client_ca_file else "--cluster-authority"
        raise errors.ConfigurationError(f"{flag} needs TLS: leave --no-tls out")
    presented = None
    if kubelet_client_certificate or kubelet_client_key:
        if not (
            kubelet_client_certificate and kubelet_client_key and kubelet_certificate_authority
        ):
            raise errors.ConfigurationError(
                "--kubelet-client-certificate, --kubelet-client-key and "
                "--kubelet-certificate-authority must be used together"
            )
        presented = Certificate(kubelet_client_certificate, kubelet_client_key)
    limits = Limits(max_requests_inflight, max_mutating_requests_inflight, request_timeout)
    options = ServerOptions(
        address=Address(bind_address, port),
        anonymous=anonymous_auth,
        tls=tls,
        token_file=token_file,
        kubeconfig=kubeconfig,
        token_auth_file=token_auth_file,
        client_ca_file=client_ca_file,
        modes=parse_modes(authorization_mode),
        admission_config=admission_control_config_file,
        limits=limits,
        kubelet_authority=kubelet_certificate_authority,
        kubelet_client=presented,
        cluster_authority=cluster_authority,
        local_storage_class=local_storage_class,
        bootstrap_tokens=enable_bootstrap_token_auth,
        names=names,
        tokens=TokenFlags.take(other_flags),
        aggregation=AggregationFlags.take(other_flags),
    )
    run(Settings(), options)


def run(settings: Settings, options: ServerOptions) -> None:
    """Serves until a signal comes. Raises ConfigurationError and StoreUnavailable."""
    logs.configure(settings.log_format, settings.log_level)
    # first, so that a taken port is reported before anything is written
    with closing(bind(options.address)) as listener:
        folder = settings.state_dir
        options = _with_authority(options, folder)
        users = tokenfile.read(options.token_auth_file) if options.token_auth_file else {}
        if options.client_ca_file:
            check_authorities(options.client_ca_file)
        token = credentials.load_token(options.token_file or folder / "apiserver-token")
        access = AccessRules(token, options.anonymous, _is_loopback(options.address), users)
        certificate = credentials.certificate(folder, _hosts(options)) if options.tls else None
        tokens = options.tokens.load(folder, url_of(listener, certificate))
        with closing(PipelinedIO(settings, name="kcm-apiserver")) as io:
            io.attach()
            _serve(Store(io), options, access, certificate, listener, tokens=tokens)


def _with_authority(options: ServerOptions, folder: Path) -> ServerOptions:
    """Returns the options with the cluster's authority, if they ask for one.

    Files that flags name take precedence. Raises ConfigurationError.
    """
    if not options.cluster_authority:
        return options
    authority = credentials.load_authority(folder)
    trusted = [authority.certificate, *filter(None, [options.client_ca_file])]
    options = replace(
        options,
        client_ca_file=credentials.write_client_authorities(folder, *trusted),
        aggregation=options.aggregation.complete(folder),
    )
    if options.kubelet_authority is not None:
        return options
    return replace(
        options,
        kubelet_authority=authority.certificate,
        kubelet_client=credentials.kubelet_client(folder, authority),
    )


def _serve(
    store: Store,
    options: ServerOptions,
    access: AccessRules,
    certificate: Certificate | None,
    listener: socket.socket,
    *,
    tokens: TokenOptions,
) -> None:
    """Creates the default objects, writes the kubeconfig, and serves until a signal comes."""
    rbac = ROLES in options.modes
    bootstrap = ClusterBootstrap(
        store,
        roles=rbac,
        joining=options.bootstrap_tokens,
        local_volumes=options.local_storage_class,
    )
    bootstrap.ensure()
    kubelet = _kubelet_client(options.kubelet_authority, options.kubelet_client)
    config = options.admission_config
    app = ApiServer(
        store,
        access,
        limits=options.limits,
        modes=options.modes,
        kubelet=kubelet,
        tokens=tokens,
        bootstrap_tokens=options.bootstrap_tokens,
        credentials=load_admission_config(config) if config is not None else None,
        aggregation=options.aggregation.load(options.client_ca_file),
    )
    url = url_of(listener, certificate)
    path = options.kubeconfig or store.io.settings.state_dir / "kubeconfig"
    authority = certificate.certificate if certificate else None
    credentials.write_kubeconfig(path, url, access.token, authority)
    log.info("Serving the Kubernetes API", url=url, kubeconfig=str(path))
    service = KubernetesService(store, options.address.host, listener.getsockname()[1])
    service.start()
    bootstrap.start()
    try:
        serve(ApiHttpServer(app, certificate, options.client_ca_file), app, listener)
    finally:
        bootstrap.stop()
        service.stop()


def _kubelet_client(authority: Path | None, presented: Certificate | None) -> KubeletClient:
    if authority is None:
        return KubeletClient()
    try:
        context = ssl.create_default_context(cafile=str(authority))
    except (OSError, ssl.SSLError) as error:
        raise errors.ConfigurationError(
            f"--kubelet-certificate-authority {authority} cannot be used: {error}"
        ) from None
    if presented is None:
        return KubeletClient(context)
    try:
        context.load_cert_chain(presented.certificate, presented.key)
    except (OSError, ssl.SSLError) as error:
        raise errors.ConfigurationError(
            f"--kubelet-client-certificate {presented.certificate} cannot be used: {error}"
        ) from None
    return KubeletClient(context, mixed=True)


def _hosts(options: ServerOptions) -> tuple[str, ...]:
    """Returns the names and addresses for the certificate besides those of this machine."""
    host = options.address.host
    return options.names if host in {"0.0.0.0", "::"} else (host, *options.names)


def _is_loopback(address: Address) -> bool:
    host = f"[{address.host}]" if ":" in address.host else address.host
    return is_loopback_host(host)


def main() -> int:
    """Runs the process, and returns its exit code."""
    try:
        command.main(standalone_mode=False)
    except (errors.ConfigurationError, errors.Temporary) as error:
        click.echo(f"error: {error.message}", err=True)
        return 1
    except click.ClickException as error:
        error.show()
        return error.exit_code
    return 0
