"""The command `python -m kcm.apiserver`: its flags, and the server that they configure.

Flags have the names of kube-apiserver's flags where it has them.
"""

from __future__ import annotations

import math
import re
from collections.abc import Callable
from functools import reduce
from ipaddress import IPv6Address
from pathlib import Path
from typing import Any

import click

from kcm import __version__, errors, logs
from kcm.apimachinery.durations import parse_seconds
from kcm.apiserver.aggregation.options import AggregationFlags, add_aggregation_flags
from kcm.apiserver.auth import flags
from kcm.apiserver.auth.authorizer import parse_modes
from kcm.apiserver.auth.token_options import TokenFlags, add_token_flags
from kcm.apiserver.credentials import Certificate
from kcm.apiserver.http.limits import Limits
from kcm.apiserver.running import ServerOptions, run
from kcm.apiserver.serving import Address
from kcm.options.feature_gates import parse as parse_gates
from kcm.settings import Settings

# --- The server's flags about limits on its clients.


_DEFAULTS = Limits()
_LAST_PORT = 65535
_ENDPOINT = re.compile(
    r"(?:\[(?P<ip>[0-9A-Fa-f:.]+)\]|(?P<host>[A-Za-z0-9._-]+))(?::(?P<port>[1-9][0-9]{0,4}))?"
)

_HELP = {  # by the names of the limits, in the order of --help
    "max_requests_inflight": "Added to --max-mutating-requests-inflight, the requests that are "
    "handled at a time, watches excluded. PriorityLevelConfigurations share them; others wait, and "
    "get 429 after a quarter of --request-timeout. Both 0: no limit.",
    "max_mutating_requests_inflight": "See --max-requests-inflight.",
    "request_timeout": "Seconds after which a request gets 504, watches excluded. 0: no limit.",
    "max_watches_per_user": "The most open watches of one user; others get 429. Members of "
    "system:masters have no limit. 0: no limit.",
    "max_unauthenticated_connections_per_address": "The most connections from one address that "
    "have not sent a request with valid credentials; others are closed at once. 0: no limit.",
    "tls_handshake_timeout": "Seconds that a client has for the TLS handshake. 0: a minute.",
}


def add_limit_flags(command: Callable[..., Any]) -> Callable[..., Any]:
    """Adds the flags to a command."""
    return reduce(_add_flag, reversed(_HELP), command)


def _add_flag(command: Callable[..., Any], limit: str) -> Callable[..., Any]:
    default = getattr(_DEFAULTS, limit)
    return click.option(
        f"--{limit.replace('_', '-')}",
        type=click.FloatRange(0) if isinstance(default, float) else click.IntRange(0),
        default=default,
        show_default=True,
        help=_HELP[limit],
    )(command)


def take_limits(values: dict[str, Any]) -> Limits:
    """Removes the values of these flags from those of a command, and returns them."""
    return Limits(**{limit: values.pop(limit) for limit in _HELP})


def _parse_delay(_: click.Context, parameter: click.Parameter, text: str) -> float:
    try:
        seconds = parse_seconds(text)
    except ValueError as error:
        raise click.BadParameter(str(error)) from None
    if not 0 <= seconds < math.inf:
        raise click.BadParameter(f'must be finite and not negative, not "{text}"')
    return seconds


def _parse_endpoint(_: click.Context, parameter: click.Parameter, text: str | None) -> Any:
    """Returns the address of a text like `api.example.com`, `10.0.0.7:6443` or `[::1]:6443`."""
    if text is None:
        return None
    parts, port = _ENDPOINT.fullmatch(text), 0
    try:
        if parts is None or (port := int(parts["port"] or 0)) > _LAST_PORT:
            raise ValueError(text)
        host = str(IPv6Address(parts["ip"])) if parts["ip"] else parts["host"]
    except ValueError:
        raise click.BadParameter(f'must be HOST or HOST:PORT, not "{text}"') from None
    return Address(host, port)


@click.command()
@click.option(
    "--bind-address", default="127.0.0.1", show_default=True, help="Address to listen on."
)
@click.option(
    "--port",
    type=click.IntRange(0, _LAST_PORT),
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
    "--control-plane-endpoint",
    metavar="HOST[:PORT]",
    callback=_parse_endpoint,
    help="Where clients reach the API servers, such as a load balancer before several. It is in "
    "the kubeconfig and in the generated certificate. Default port: that of this server.",
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
@flags.feature_gates
@flags.admission_control_config_file
@add_token_flags
@add_aggregation_flags
@add_limit_flags
@click.option(
    "--kubeconfig",
    type=click.Path(path_type=Path),
    help="Where to write the kubeconfig. Default: kubeconfig in the state folder.",
)
@click.option(
    "--kubelet-certificate-authority",
    type=flags.EXISTING_FILE,
    help="File of the authority that signed the kubelets' certificates. Without it, "
    "requests to kubelets use plain HTTP.",
)
@click.option(
    "--kubelet-client-certificate",
    type=flags.EXISTING_FILE,
    help="File of the client certificate for requests to kubelets. With it, kubelets are reached "
    "over TLS, except kcm's own that say on their nodes that they serve none.",
)
@click.option(
    "--kubelet-client-key",
    type=flags.EXISTING_FILE,
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
@click.option(
    "--audit-policy-file",
    type=flags.EXISTING_FILE,
    help="File of a Policy (audit.k8s.io/v1), which says what is in the audit log.",
)
@click.option(
    "--audit-log-path",
    default="",
    help="File to which audit events are appended, `-` for standard output. Needs "
    "--audit-policy-file.",
)
@click.option(
    "--tls-cert-file",
    type=flags.EXISTING_FILE,
    help="File of the certificate to serve with, instead of one that is generated. Needs "
    "--tls-private-key-file.",
)
@click.option(
    "--tls-private-key-file",
    type=flags.EXISTING_FILE,
    help="File of that certificate's key.",
)
@click.option(
    "--shutdown-delay-duration",
    default="0s",
    show_default=True,
    callback=_parse_delay,
    help="How long the server serves on when it is asked to stop, while /readyz fails, so that "
    "load balancers send no more requests. A second Ctrl-C ends it.",
)
@click.version_option(__version__)
def command(**values: Any) -> None:
    """Serve the Kubernetes API over the store."""
    options = read_options(**values)
    settings = Settings()
    logs.configure(settings.log_format, settings.log_level)
    run(settings, options)


def read_options(
    *,
    bind_address: str,
    port: int,
    anonymous_auth: bool,
    tls: bool,
    names: tuple[str, ...],
    control_plane_endpoint: Address | None,
    token_file: Path | None,
    kubeconfig: Path | None,
    token_auth_file: Path | None,
    client_ca_file: Path | None,
    authorization_mode: str,
    feature_gates: str,
    admission_control_config_file: Path | None,
    kubelet_certificate_authority: Path | None,
    kubelet_client_certificate: Path | None,
    kubelet_client_key: Path | None,
    cluster_authority: bool,
    local_storage_class: bool,
    enable_bootstrap_token_auth: bool,
    audit_policy_file: Path | None,
    audit_log_path: str,
    tls_cert_file: Path | None,
    tls_private_key_file: Path | None,
    shutdown_delay_duration: float,
    **other_flags: Any,
) -> ServerOptions:
    """Returns what the values of the command's flags say. Raises ConfigurationError."""
    if (client_ca_file or cluster_authority) and not tls:
        flag = "--client-ca-file" if client_ca_file else "--cluster-authority"
        raise errors.ConfigurationError(f"{flag} needs TLS: leave --no-tls out")
    presented = _read_certificate(
        kubelet_client_certificate,
        kubelet_client_key,
        kubelet_certificate_authority is not None,
        "--kubelet-client-certificate, --kubelet-client-key and --kubelet-certificate-authority "
        "must be used together",
    )
    served = _read_certificate(
        tls_cert_file,
        tls_private_key_file,
        tls,
        "--tls-cert-file and --tls-private-key-file must be used together, and with TLS",
    )
    return ServerOptions(
        address=Address(bind_address, port),
        anonymous=anonymous_auth,
        tls=tls,
        token_file=token_file,
        kubeconfig=kubeconfig,
        token_auth_file=token_auth_file,
        client_ca_file=client_ca_file,
        modes=parse_modes(authorization_mode),
        gates=parse_gates(feature_gates),
        admission_config=admission_control_config_file,
        limits=take_limits(other_flags),
        kubelet_authority=kubelet_certificate_authority,
        kubelet_client=presented,
        cluster_authority=cluster_authority,
        local_storage_class=local_storage_class,
        bootstrap_tokens=enable_bootstrap_token_auth,
        shutdown_delay=shutdown_delay_duration,
        names=names,
        endpoint=control_plane_endpoint,
        certificate=served,
        audit_policy=audit_policy_file,
        audit_log=audit_log_path,
        tokens=TokenFlags.take(other_flags),
        aggregation=AggregationFlags.take(other_flags),
    )


def _read_certificate(
    certificate: Path | None, key: Path | None, usable: bool, refusal: str
) -> Certificate | None:
    """Returns the certificate of two flags, None if neither is given.

    Raises ConfigurationError with `refusal` if one is missing, or they cannot be used.
    """
    if certificate is None and key is None:
        return None
    if certificate is None or key is None or not usable:
        raise errors.ConfigurationError(refusal)
    return Certificate(certificate, key)


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
