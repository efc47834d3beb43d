"""gRPC probes: `Check` of the standard health service, without TLS.

Imported by the first such probe, for grpcio is the optional part `kcm[grpc]`.

Source: pkg/probe/grpc/grpc.go, Kubernetes 1.33. Departure: a proxy that the environment names
is not used.
"""

from __future__ import annotations

import time

import grpc
from google.protobuf.wrappers_pb2 import Int32Value, StringValue

from kcm.apimachinery.durations import printed
from kcm.kubelet.prober.outcomes import USER_AGENT, ProbeOutcome, ProbeResult

_METHOD = "/grpc.health.v1.Health/Check"
_STATUSES = ("UNKNOWN", "SERVING", "NOT_SERVING", "SERVICE_UNKNOWN")
_SERVING = 1
_OPTIONS = (
    ("grpc.primary_user_agent", USER_AGENT),
    ("grpc.enable_http_proxy", 0),
    # Otherwise a probe would wait as long as earlier ones to the same place have failed.
    ("grpc.use_local_subchannel_pool", 1),
)
_GO_NAMES = {"CANCELLED": "Canceled"}  # the one that is spelt in another way


def check(host: str, port: int, service: str, timeout: float) -> ProbeResult:
    """Ask `host` for the health of a service, "" for the server's own; seconds for all of it."""
    until = time.monotonic() + timeout
    within = printed(timeout)
    address = f"[{host}]:{port}" if ":" in host else f"{host}:{port}"
    with grpc.insecure_channel(address, _OPTIONS) as channel:
        try:
            grpc.channel_ready_future(channel).result(timeout)
        except grpc.FutureTimeoutError:
            text = f'timeout: failed to connect service "{address}" within {within}'
            return ProbeResult(ProbeOutcome.FAILURE, f"{text}: context deadline exceeded")
        # Both messages have one field, of number 1, as the wrappers of a string and an int have.
        call = channel.unary_unary(_METHOD, StringValue.SerializeToString, Int32Value.FromString)
        try:
            answer = call(StringValue(value=service), timeout=max(until - time.monotonic(), 0.0))
        except grpc.RpcError as error:
            return ProbeResult(ProbeOutcome.FAILURE, _told(error, within))
    status = answer.value
    if status == _SERVING:
        return ProbeResult(ProbeOutcome.SUCCESS, "service healthy")
    name = _STATUSES[status] if 0 <= status < len(_STATUSES) else str(status)
    return ProbeResult(ProbeOutcome.FAILURE, f'service unhealthy (responded with "{name}")')


def _told(error: grpc.RpcError, within: str) -> str:
    code, details = error.code(), error.details()
    if code is grpc.StatusCode.UNIMPLEMENTED:
        return (
            "error: this server does not implement the grpc health protocol "
            f"(grpc.health.v1.Health): {details}"
        )
    if code is grpc.StatusCode.DEADLINE_EXCEEDED:
        return f"timeout: health rpc did not complete within {within}"
    name = _GO_NAMES.get(code.name, code.name.title().replace("_", ""))
    return f"error: health rpc probe failed: rpc error: code = {name} desc = {details}"
