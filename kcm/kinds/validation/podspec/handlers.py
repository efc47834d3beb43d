"""Validation of probes and lifecycle hooks.

Source: validateProbe, validateHandler and validateLifecycle in
pkg/apis/core/validation/validation.go, Kubernetes 1.33.
"""

from __future__ import annotations

import re

from kcm.api.core_v1 import Container, HTTPGetAction, Probe
from kcm.api.core_v1.handlers import Lifecycle, LifecycleHandler, SleepAction
from kcm.apimachinery import names
from kcm.apimachinery.field_errors import (
    Faults,
    forbidden,
    invalid,
    invalid_all,
    not_negative,
    not_supported,
    required,
)
from kcm.kinds.validation.podspec.context import PodContext

_SCHEMES = ("HTTP", "HTTPS")
_PORT_RANGE = "must be between 1 and 65535, inclusive"
_HEADER = re.compile(r"[-A-Za-z0-9]+")
_HEADER_MESSAGE = (
    "a valid HTTP header must consist of alphanumeric characters or '-' (e.g. 'X-Header-Name', "
    "regex used for validation is '[-A-Za-z0-9]+')"
)


def probes(container: Container, path: str) -> Faults:
    faults = [
        *_probe(container.liveness_probe, f"{path}.livenessProbe"),
        *_probe(container.readiness_probe, f"{path}.readinessProbe"),
        *_probe(container.startup_probe, f"{path}.startupProbe"),
    ]
    readiness = container.readiness_probe
    if readiness is not None and readiness.termination_grace_period_seconds is not None:
        where = f"{path}.readinessProbe.terminationGracePeriodSeconds"
        value = readiness.termination_grace_period_seconds
        faults.append(invalid(where, value, "must not be set for readinessProbes"))
    for name, probe in (
        ("livenessProbe", container.liveness_probe),
        ("startupProbe", container.startup_probe),
    ):
        if probe is not None and (probe.success_threshold or 1) != 1:
            where = f"{path}.{name}.successThreshold"
            faults.append(invalid(where, probe.success_threshold, "must be 1"))
    return faults


def _probe(probe: Probe | None, path: str) -> Faults:
    if probe is None:
        return []
    faults = _handler(probe, path, None)
    for name, value in (
        ("initialDelaySeconds", probe.initial_delay_seconds),
        ("timeoutSeconds", probe.timeout_seconds),
        ("periodSeconds", probe.period_seconds),
        ("successThreshold", probe.success_threshold),
        ("failureThreshold", probe.failure_threshold),
    ):
        faults += not_negative(f"{path}.{name}", value)
    grace = probe.termination_grace_period_seconds
    if grace is not None and grace <= 0:
        where = f"{path}.terminationGracePeriodSeconds"
        faults.append(invalid(where, grace, "must be greater than 0"))
    return faults


def lifecycle(hooks: Lifecycle, path: str, pod: PodContext) -> Faults:
    faults: Faults = []
    if hooks.post_start is not None:
        faults += _handler(hooks.post_start, f"{path}.postStart", pod.grace_period)
    if hooks.pre_stop is not None:
        faults += _handler(hooks.pre_stop, f"{path}.preStop", pod.grace_period)
    return faults


def _handler(handler: Probe | LifecycleHandler, path: str, grace_period: int | None) -> Faults:
    """Checks that exactly one action of a probe or hook is set, and that it is valid."""
    ways = ("exec", "http_get", "tcp_socket", "grpc", "sleep")
    used = [way for way in ways if getattr(handler, way, None) is not None]
    if not used:
        return [required(path, "must specify a handler type")]
    faults = _way(handler, used[0], path, grace_period)
    fields = type(handler).model_fields
    for way in used[1:]:
        detail = "may not specify more than 1 handler type"
        faults.append(forbidden(f"{path}.{fields[way].alias}", detail))
    return faults


def _way(
    handler: Probe | LifecycleHandler, way: str, path: str, grace_period: int | None
) -> Faults:
    if way == "exec" and handler.exec is not None:
        return [] if handler.exec.command else [required(f"{path}.exec.command")]
    if way == "http_get" and handler.http_get is not None:
        return _http_get(handler.http_get, f"{path}.httpGet")
    if way == "tcp_socket" and handler.tcp_socket is not None:
        return port_or_name(handler.tcp_socket.port, f"{path}.tcpSocket.port")
    if isinstance(handler, Probe):
        return [] if handler.grpc is None else port_number(handler.grpc.port, f"{path}.grpc.port")
    return [] if handler.sleep is None else _sleep(handler.sleep, grace_period, f"{path}.sleep")


def _http_get(action: HTTPGetAction, path: str) -> Faults:
    faults = [] if action.path else [required(f"{path}.path")]
    faults += port_or_name(action.port, f"{path}.port")
    if action.scheme not in _SCHEMES:
        faults.append(not_supported(f"{path}.scheme", action.scheme or "", _SCHEMES))
    for header in action.http_headers or ():
        if not _HEADER.fullmatch(header.name):
            faults.append(invalid(f"{path}.httpHeaders", header.name, _HEADER_MESSAGE))
    return faults


def _sleep(action: SleepAction, grace_period: int | None, path: str) -> Faults:
    if grace_period is None or 0 <= action.seconds <= grace_period:
        return []
    detail = f"must be non-negative and less than terminationGracePeriodSeconds ({grace_period})"
    return [invalid(path, action.seconds, detail)]


def port_number(number: int, path: str) -> Faults:
    return [] if 1 <= number <= 65535 else [invalid(path, number, _PORT_RANGE)]


def port_or_name(port: int | str, path: str) -> Faults:
    if isinstance(port, int):
        return port_number(port, path)
    return invalid_all(path, port, names.port_name_faults(port))
