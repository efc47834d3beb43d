"""gRPC probes, which call `Check` of the standard health service without TLS.

The first such probe imports this module, because grpcio is the optional extra `kcm[grpc]`.

Source: pkg/probe/grpc/grpc.go, Kubernetes 1.33. Departure: the proxy of environment variables is
not used.
"""

from __future__ import annotations

import time

import grpc
from google.protobuf.wrappers_pb2 import Int32Value, StringValue

from kcm.apimachinery.durations import format_seconds
from kcm.kubelet.prober.state import USER_AGENT, ProbeOutcome, ProbeResult

_METHOD = "/grpc.health.v1.Health/Check"
_STATUSES = ("UNKNOWN", "SERVING", "NOT_SERVING", "SERVICE_UNKNOWN")
_SERVING = 1
_OPTIONS = (
    ("grpc.primary_user_agent", USER_AGENT),
    ("grpc.enable_http_proxy", 0),
    # Without it, a probe waits for the back-off of earlier probes of the same address.
    ("grpc.use_local_subchannel_pool", 1),
)
_GO_NAMES = {"CANCELLED": "Canceled"}  # Go spells only this one differently


def check(host: str, port: int, service: str, timeout: float) -> ProbeResult:
    """Returns the result of a gRPC health check of `service`; "" is the server as a whole.

    Connecting and calling may take `timeout` seconds together. A failed call is a failed check.
    """
    deadline = time.monotonic() + timeout
    limit = format_seconds(timeout)
    address = f"[{host}]:{port}" if ":" in host else f"{host}:{port}"
    with grpc.insecure_channel(address, _OPTIONS) as channel:
        try:
            grpc.channel_ready_future(channel).result(timeout)
        except grpc.FutureTimeoutError:
            text = f'timeout: failed to connect service "{address}" within {limit}'
            return ProbeResult(ProbeOutcome.FAILURE, f"{text}: context deadline exceeded")
        # Request and response have one field, number 1, so the wrappers of string and int fit.
        call = channel.unary_unary(_METHOD, StringValue.SerializeToString, Int32Value.FromString)
        try:
            reply = call(StringValue(value=service), timeout=max(deadline - time.monotonic(), 0.0))
        except grpc.RpcError as error:
            return ProbeResult(ProbeOutcome.FAILURE, _describe_error(error, limit))
    status = reply.value
    if status == _SERVING:
        return ProbeResult(ProbeOutcome.SUCCESS, "service healthy")
    name = _STATUSES[status] if 0 <= status < len(_STATUSES) else str(status)
    return ProbeResult(ProbeOutcome.FAILURE, f'service unhealthy (responded with "{name}")')


def _describe_error(error: grpc.RpcError, limit: str) -> str:
    code, details = error.code(), error.details()
    if code is grpc.StatusCode.UNIMPLEMENTED:
        return (
            "error: this server does not implement the grpc health protocol "
            f"(grpc.health.v1.Health): {details}"
        )
    if code is grpc.StatusCode.DEADLINE_EXCEEDED:
        return f"timeout: health rpc did not complete within {limit}"
    name = _GO_NAMES.get(code.name, code.name.title().replace("_", ""))
    return f"error: health rpc probe failed: rpc error: code = {name} desc = {details}"
