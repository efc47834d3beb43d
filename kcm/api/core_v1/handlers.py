"""core/v1: probes and lifecycle hooks, and what they do.

Source: staging/src/k8s.io/api/core/v1/types.go, Kubernetes 1.33.
"""

from __future__ import annotations

from typing import Annotated, Any

from pydantic import PlainValidator

from kcm.apimachinery.base import Int32, Int64, Model


def _int_or_string(value: Any) -> int | str:
    if isinstance(value, str) or (
        isinstance(value, int) and not isinstance(value, bool) and -(2**31) <= value < 2**31
    ):
        return value
    raise ValueError("must be an int32 or a string")


IntOrString = Annotated[int | str, PlainValidator(_int_or_string)]


class ExecAction(Model):
    """A command to run inside the container."""

    command: list[str] | None = None


class HTTPHeader(Model):
    """A header of a request."""

    name: str = ""
    value: str = ""


class HTTPGetAction(Model):
    """An HTTP GET request."""

    path: str | None = None
    port: IntOrString = 0
    host: str | None = None
    scheme: str | None = None
    http_headers: list[HTTPHeader] | None = None


class TCPSocketAction(Model):
    """A TCP connection that must open."""

    port: IntOrString = 0
    host: str | None = None


class GRPCAction(Model):
    """A gRPC health check."""

    port: Int32 = 0
    service: str | None = None


class SleepAction(Model):
    """A pause, in seconds."""

    seconds: Int64 = 0


class Probe(Model):
    """A check of a container's health, and how often it runs (seconds)."""

    exec: ExecAction | None = None
    http_get: HTTPGetAction | None = None
    tcp_socket: TCPSocketAction | None = None
    grpc: GRPCAction | None = None
    initial_delay_seconds: Int32 | None = None
    timeout_seconds: Int32 | None = None
    period_seconds: Int32 | None = None
    success_threshold: Int32 | None = None
    failure_threshold: Int32 | None = None
    termination_grace_period_seconds: Int64 | None = None


class LifecycleHandler(Model):
    """What to do when a container has started or is about to end; one field is set."""

    exec: ExecAction | None = None
    http_get: HTTPGetAction | None = None
    tcp_socket: TCPSocketAction | None = None
    sleep: SleepAction | None = None


class Lifecycle(Model):
    """What to do when a container has started and before it ends."""

    post_start: LifecycleHandler | None = None
    pre_stop: LifecycleHandler | None = None
    stop_signal: str | None = None
