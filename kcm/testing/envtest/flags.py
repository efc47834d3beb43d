"""Every flag of kube-apiserver 1.36: acted on, accepted as it changes nothing here, or refused.

Source: `kube-apiserver --help`, Kubernetes 1.36.2. Imports the standard library only.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from typing import NamedTuple


class FlagError(Exception):
    """A flag that does not exist, has no value, or is refused. The message says why."""


ACTED_ON = "acted on"
ACCEPTED = "accepted"
REFUSED = "refused"


class Flag(NamedTuple):
    """A flag, what becomes of it, and why. `only` are the values that are not refused, () for
    any.
    """

    name: str
    treatment: str
    why: str = ""
    only: tuple[str, ...] = ()

    @property
    def is_boolean(self) -> bool:
        """Reports whether the flag may stand without a value."""
        return self.name in _BOOLEANS.split()

    @property
    def accumulates(self) -> bool:
        """Reports whether every value counts if the flag is given several times, and not only the
        last one, as with pflag's stringArray, strings and maps.
        """
        return self.name in _ACCUMULATING.split()


# The words for booleans, as Go's strconv.ParseBool reads them.
_WORDS = {
    **dict.fromkeys(("1", "t", "T", "true", "TRUE", "True"), "true"),
    **dict.fromkeys(("0", "f", "F", "false", "FALSE", "False"), "false"),
}
_BOOLEANS = """
    aggregator-reject-forwarding-redirect allow-privileged anonymous-auth
    audit-log-batch-throttle-enable audit-log-compress audit-log-truncate-enabled
    audit-webhook-batch-throttle-enable audit-webhook-truncate-enabled contention-profiling
    disable-http2-serving emulation-forward-compatible enable-aggregator-routing
    enable-bootstrap-token-auth enable-garbage-collector enable-logs-handler
    enable-priority-and-fairness encryption-provider-config-automatic-reload
    log-json-split-stream log-text-split-stream permit-address-sharing permit-port-sharing
    profiling runtime-config-emulation-forward-compatible
    send-retry-after-while-not-ready-once service-account-extend-token-expiration
    service-account-lookup shutdown-send-retry-after watch-cache
"""
_ACCUMULATING = """
    admission-control api-audiences authorization-mode disable-admission-plugins
    enable-admission-plugins etcd-servers feature-gates runtime-config service-account-issuer
    service-account-key-file
"""

_ACTED_ON = """
    admission-control-config-file anonymous-auth api-audiences audit-log-path audit-policy-file
    authorization-mode bind-address cert-dir client-ca-file default-not-ready-toleration-seconds
    default-unreachable-toleration-seconds disable-admission-plugins enable-admission-plugins
    enable-bootstrap-token-auth etcd-prefix etcd-servers feature-gates
    kubelet-certificate-authority kubelet-client-certificate kubelet-client-key
    max-mutating-requests-inflight max-requests-inflight proxy-client-cert-file
    proxy-client-key-file request-timeout requestheader-client-ca-file runtime-config secure-port
    service-account-extend-token-expiration service-account-issuer service-account-jwks-uri
    service-account-key-file service-account-max-token-expiration
    service-account-signing-key-file service-cluster-ip-range service-node-port-range tls-cert-file
    tls-private-key-file token-auth-file
"""

# By the reason: flags that change nothing that a client of this server can see.
_ACCEPTED = {
    "kcm stores objects in a server of its own": """
        etcd-compaction-interval etcd-count-metric-poll-period etcd-db-metric-poll-interval
        etcd-healthcheck-timeout etcd-readycheck-timeout lease-reuse-duration-seconds
        storage-initialization-timeout storage-media-type
    """,
    "a setting of caches and queues inside the real server": """
        delete-collection-workers enable-priority-and-fairness goaway-chance
        http2-max-streams-per-connection max-connection-bytes-per-sec min-request-timeout
        watch-cache watch-cache-sizes
    """,
    "each audit event is written at once, whole, into one file": """
        audit-log-batch-buffer-size audit-log-batch-max-size audit-log-batch-max-wait
        audit-log-batch-throttle-burst audit-log-batch-throttle-enable
        audit-log-batch-throttle-qps audit-log-compress audit-log-maxage audit-log-maxbackup
        audit-log-maxsize audit-log-mode audit-log-truncate-enabled
        audit-log-truncate-max-batch-size audit-log-truncate-max-event-size
    """,
    "kcm speaks HTTP/1.1": "disable-http2-serving",
    "the server starts and stops at once": """
        livez-grace-period send-retry-after-while-not-ready-once shutdown-delay-duration
        shutdown-send-retry-after shutdown-watch-termination-grace-period
    """,
    "a setting of the log": """
        log-flush-frequency log-json-info-buffer-size log-json-split-stream
        log-text-info-buffer-size log-text-split-stream logging-format v vmodule
    """,
    "a setting of metrics or profiles that kcm does not have": """
        allow-metric-labels allow-metric-labels-manifest contention-profiling disabled-metrics
        profiling show-hidden-metrics-for-version
    """,
    "nothing outside this machine looks for the server": """
        advertise-address external-hostname permit-address-sharing permit-port-sharing
        endpoint-reconciler-type peer-advertise-ip peer-advertise-port peer-ca-file
    """,
    "kcm sends requests to the endpoints of a Service in any case": "enable-aggregator-routing",
    "kubelets are asked at the addresses of their nodes": """
        kubelet-preferred-address-types kubelet-timeout
    """,
    "Events are deleted by a controller of kcm, `--event-ttl` of the manager": "event-ttl",
    "the handler is no part of this server": "enable-logs-handler",
    "the controller is off by default": """
        coordinated-leadership-lease-duration coordinated-leadership-renew-deadline
        coordinated-leadership-retry-period
    """,
    "it says how the webhook token authenticator works, which needs a flag that is refused": """
        authentication-token-webhook-cache-ttl authentication-token-webhook-version
        authorization-webhook-cache-authorized-ttl authorization-webhook-cache-unauthorized-ttl
        authorization-webhook-version
    """,
    "it says how encryption works, which needs a flag that is refused": """
        encryption-provider-config-automatic-reload
    """,
}

_REFUSED = {
    "kcm knows users by tokens, client certificates and service accounts": """
        authentication-config authentication-token-webhook-config-file oidc-ca-file oidc-client-id
        oidc-groups-claim oidc-groups-prefix oidc-issuer-url oidc-required-claim
        oidc-signing-algs oidc-username-claim oidc-username-prefix requestheader-allowed-names
        requestheader-extra-headers-prefix requestheader-group-headers
        requestheader-uid-headers requestheader-username-headers
    """,
    "kcm decides by Node, RBAC, AlwaysAllow and AlwaysDeny": """
        authorization-config authorization-policy-file authorization-webhook-config-file
    """,
    "kcm writes audit events into a file only": """
        audit-webhook-batch-buffer-size audit-webhook-batch-max-size audit-webhook-batch-max-wait
        audit-webhook-batch-throttle-burst audit-webhook-batch-throttle-enable
        audit-webhook-batch-throttle-qps audit-webhook-config-file audit-webhook-initial-backoff
        audit-webhook-mode audit-webhook-truncate-enabled audit-webhook-truncate-max-batch-size
        audit-webhook-truncate-max-event-size audit-webhook-version
    """,
    "kcm's `etcd` is reached without TLS, and holds all kinds": """
        etcd-cafile etcd-certfile etcd-keyfile etcd-servers-overrides
    """,
    "kcm does not encrypt objects": "encryption-provider-config",
    "kcm has no egress selector": "egress-selector-config-file",
    "kcm signs tokens by a key in a file": "service-account-signing-endpoint",
    "kcm sends no traces": "tracing-config-file",
    "kcm does not send this header": "cors-allowed-origins strict-transport-security-directives",
    "the versions and ciphers of TLS are those of Python's ssl, with one certificate": """
        tls-cipher-suites tls-curve-preferences tls-min-version tls-sni-cert-key
    """,
    "kcm has no such socket": "debug-socket-path",
    "the Service `kubernetes` has no port on nodes": "kubernetes-service-node-port",
    "use --enable-admission-plugins and --disable-admission-plugins": "admission-control",
}

# Flags of which only the value is accepted that describes what kcm does.
_ONLY = {
    "allow-privileged": (("true",), "kcm admits privileged containers"),
    "audit-log-format": (("json",), "audit events are lines of JSON"),
    "audit-log-version": (("audit.k8s.io/v1",), "audit events are those of v1"),
    "aggregator-reject-forwarding-redirect": (("true",), "kcm follows no redirect of such servers"),
    "emulated-version": (("1.36", "kube=1.36"), "kcm is like Kubernetes 1.36"),
    "emulation-forward-compatible": (("false",), "kcm is like Kubernetes 1.36"),
    "enable-garbage-collector": (("true",), "objects always wait for their dependents if asked to"),
    "min-compatibility-version": (("1.36", "kube=1.36", "1.35", "kube=1.35"),
                                  "kcm is like Kubernetes 1.36"),
    "runtime-config-emulation-forward-compatible": (("false",), "kcm is like Kubernetes 1.36"),
    "service-account-lookup": (("true",), "kcm looks up the objects that a token is bound to"),
    "storage-backend": (("etcd3",), "kcm's `etcd` stands in for etcd 3"),
}  # fmt: skip


def _build() -> Iterator[Flag]:
    yield from (Flag(name, ACTED_ON) for name in _ACTED_ON.split())
    for why, names in _ACCEPTED.items():
        yield from (Flag(name, ACCEPTED, why) for name in names.split())
    for why, names in _REFUSED.items():
        yield from (Flag(name, REFUSED, why) for name in names.split())
    yield from (Flag(name, ACCEPTED, why, only) for name, (only, why) in _ONLY.items())


FLAGS: Mapping[str, Flag] = {flag.name: flag for flag in sorted(_build(), key=lambda f: f.name)}


def parse(arguments: Sequence[str]) -> dict[str, str]:
    """Returns the values of the flags that are acted on. The values of a flag that accumulates are
    joined by commas. Raises FlagError.
    """
    values: dict[str, str] = {}
    for flag, value in _read(arguments):
        if flag.treatment == REFUSED:
            raise FlagError(f"--{flag.name} is not supported: {flag.why}")
        if flag.only and not set(value.split(",")) <= set(flag.only):
            allowed = " or ".join(flag.only)
            raise FlagError(f"--{flag.name}={value} is not supported: {flag.why} (use {allowed})")
        if flag.treatment == ACTED_ON:
            earlier = values.get(flag.name) if flag.accumulates else None
            values[flag.name] = f"{earlier},{value}" if earlier else value
    return values


def _read(arguments: Sequence[str]) -> Iterator[tuple[Flag, str]]:
    """Yields the flags and their values, as pflag reads them."""
    rest = iter(arguments)
    for argument in rest:
        name, equals, value = argument.partition("=")
        if not name.startswith("-") or name in ("-", "--"):
            raise FlagError(f"unknown argument {argument!r}")
        short = not name.startswith("--")
        if short and name[1] == "v" and len(name) > 2:
            name, equals, value = "-v", "=", name[2:]
        flag = FLAGS.get(name.lstrip("-").replace("_", "-"))
        if flag is None or (short and flag.name != "v"):
            raise FlagError(f"unknown flag: {name}")
        if not equals:
            value = "true" if flag.is_boolean else next(rest, "")
            if not value:
                raise FlagError(f"flag needs an argument: {name}")
        if flag.is_boolean and (value := _WORDS.get(value, "")) == "":
            raise FlagError(f"invalid argument for a flag that is true or false: {argument}")
        yield flag, value


def show_help() -> str:
    """Returns the text of `kube-apiserver --help`, a line a flag."""
    lines = ["kube-apiserver of kcm, for controller-runtime's envtest.", "", "Flags:", ""]
    for flag in FLAGS.values():
        only = f" (only {', '.join(flag.only)})" if flag.only else ""
        why = f": {flag.why}" if flag.why else ""
        lines.append(f"      --{flag.name:<52} {flag.treatment}{only}{why}")
    return "\n".join(lines) + "\n"
