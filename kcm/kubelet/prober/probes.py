"""Runs single probes: a command, an HTTP request, a TCP connection or a gRPC call.

Source: pkg/kubelet/prober/prober.go and pkg/probe/{exec,http,tcp,grpc}, Kubernetes 1.33. Departure:
the size of a response's headers is not limited.
"""

from __future__ import annotations

import logging
import os
import socket
import time

import httpx

from kcm import errors
from kcm.api.core_v1 import PodStatus
from kcm.apimachinery.durations import format_seconds
from kcm.http.blocking import ClientOptions, describe, open_client
from kcm.kubelet.cri import Runtime
from kcm.kubelet.environment.expansion import expand_all
from kcm.kubelet.prober.state import (
    DEFAULT_TIMEOUT,
    USER_AGENT,
    ProbedContainer,
    ProbeError,
    ProbeOutcome,
    ProbeResult,
)

ATTEMPTS = 3  # attempts to run a probe that raises ProbeError
MAX_OUTPUT = 10 * 1024  # bytes of a probe's output that are kept
_MAX_REDIRECTS = 10
_DEFAULT_HEADERS = {"user-agent": USER_AGENT, "accept": "*/*", "host": ""}


class Prober:
    """Runs single probes of containers that are processes. Thread-safe."""

    def __init__(self, runtime: Runtime) -> None:
        self._runtime = runtime
        # httpx would log every probe.
        logging.getLogger("httpx").setLevel(logging.WARNING)
        # As upstream, certificates are not verified, and connections are not kept.
        self._http = open_client(ClientOptions(DEFAULT_TIMEOUT, most_idle=0))

    def close(self) -> None:
        """Closes the connections of HTTP probes."""
        self._http.close()

    def probe(self, probed: ProbedContainer, status: PodStatus, container_id: str) -> ProbeResult:
        """Runs a probe, up to ATTEMPTS times while it cannot be run. Raises ProbeError.

        `container_id` is the runtime's own id of the container.
        """
        for left in reversed(range(ATTEMPTS)):
            try:
                return self._probe_once(probed, status, container_id)
            except ProbeError:
                if not left:
                    raise
        raise AssertionError

    def _probe_once(
        self, probed: ProbedContainer, status: PodStatus, container_id: str
    ) -> ProbeResult:
        spec = probed.spec
        timeout = float(spec.timeout_seconds or DEFAULT_TIMEOUT)
        if spec.exec is not None:
            # Only values in the spec are known here; other references stay as they are.
            variables = {
                variable.name: variable.value or "" for variable in probed.container.env or ()
            }
            command = list(expand_all(spec.exec.command or (), variables))
            return self._exec(container_id, command, timeout)
        if spec.http_get is not None:
            return self._get(probed, status.pod_ip or "", timeout)
        if spec.tcp_socket is not None:
            host = spec.tcp_socket.host or status.pod_ip or ""
            return _connect(host, port_of(spec.tcp_socket.port, probed), timeout)
        if spec.grpc is not None:
            service = spec.grpc.service or ""
            return _check_grpc(status.pod_ip or "", int(spec.grpc.port), service, timeout)
        raise ProbeError(f"missing probe handler for {probed.pod.key}:{probed.container.name}")

    def _exec(self, container_id: str, command: list[str], timeout: float) -> ProbeResult:
        try:
            result = self._runtime.exec_sync(container_id, command, timeout)
        except errors.ExecTimeout:
            within = format_seconds(timeout)
            text = f'command timed out: "{" ".join(command)}" timed out after {within}'
            return ProbeResult(ProbeOutcome.FAILURE, text)
        except errors.ContainerRuntimeError as error:
            raise ProbeError(f"rpc error: {error.message}") from error
        output = (result.stdout + result.stderr)[:MAX_OUTPUT].decode(errors="replace")
        return ProbeResult(
            ProbeOutcome.FAILURE if result.exit_code else ProbeOutcome.SUCCESS, output
        )

    def _get(self, probed: ProbedContainer, address: str, timeout: float) -> ProbeResult:
        deadline = time.monotonic() + timeout
        url, headers = http_request(probed, address)
        try:
            target = httpx.URL(url)
        except httpx.InvalidURL as error:
            raise ProbeError(f"{url}: {error}") from None
        try:
            for _ in range(_MAX_REDIRECTS):
                with self._http.stream(
                    "GET", target, headers=headers, timeout=max(deadline - time.monotonic(), 0.001)
                ) as response:
                    body = _read_body(response, deadline)
                    if response.next_request is None:
                        return _judge_response(response.status_code, url, body)
                    if response.next_request.url.host != target.host:
                        text = f"Probe terminated redirects, Response body: {body}"
                        return ProbeResult(ProbeOutcome.WARNING, text)
                    target = response.next_request.url
        except httpx.TimeoutException:
            text = f'Get "{url}": context deadline exceeded (Client.Timeout exceeded)'
            return ProbeResult(ProbeOutcome.FAILURE, text)
        except (httpx.HTTPError, OSError, ValueError) as error:
            why = describe(error, target).message
            return ProbeResult(ProbeOutcome.FAILURE, f'Get "{url}": {why}')
        return ProbeResult(
            ProbeOutcome.FAILURE, f'Get "{url}": stopped after {_MAX_REDIRECTS} redirects'
        )


Headers = list[tuple[str, str]]


def http_request(probed: ProbedContainer, address: str) -> tuple[str, Headers]:
    """Returns the URL and headers of an HTTP probe of a pod with that IP. Raises ProbeError."""
    action = probed.spec.http_get
    assert action is not None
    host = action.host or address
    shown = f"[{host}]" if ":" in host else host
    path = action.path or "/"
    path = path if path.startswith("/") else f"/{path}"
    scheme = (action.scheme or "HTTP").lower()
    given = [(header.name, header.value or "") for header in action.http_headers or ()]
    return f"{scheme}://{shown}:{port_of(action.port, probed)}{path}", _with_defaults(given)


def _with_defaults(given: Headers) -> Headers:
    """Returns the headers in their order, followed by the default ones.

    Only the first of several Host headers counts. An empty value removes a default header.
    """
    named: dict[str, list[str]] = {}
    for name, value in given:
        named.setdefault(name.lower(), []).append(value)
    headers = [(name, value) for name, value in given if name.lower() not in _DEFAULT_HEADERS]
    for name, default in _DEFAULT_HEADERS.items():
        values = named.get(name, [default])
        kept = values[:1] if name == "host" else values
        headers += [(name.title(), value) for value in kept if values[0]]
    return headers


def _read_body(response: httpx.Response, deadline: float) -> str:
    body = b""
    for piece in response.iter_raw():
        body += piece
        if len(body) >= MAX_OUTPUT:
            break
        if time.monotonic() > deadline:
            raise httpx.ReadTimeout("the response was not complete in time")
    return body[:MAX_OUTPUT].decode(errors="replace")


def _judge_response(code: int, url: str, body: str) -> ProbeResult:
    if 200 <= code < 400:
        return ProbeResult(ProbeOutcome.SUCCESS, body)
    return ProbeResult(ProbeOutcome.FAILURE, f"HTTP probe failed with statuscode: {code}")


def _connect(host: str, port: int, timeout: float) -> ProbeResult:
    try:
        socket.create_connection((host, port), timeout).close()
    except TimeoutError:
        return ProbeResult(ProbeOutcome.FAILURE, f"dial tcp {host}:{port}: i/o timeout")
    except OSError as error:
        why = os.strerror(error.errno).lower() if error.errno and error.errno > 0 else str(error)
        return ProbeResult(ProbeOutcome.FAILURE, f"dial tcp {host}:{port}: connect: {why}")
    return ProbeResult(ProbeOutcome.SUCCESS)


def _check_grpc(host: str, port: int, service: str, timeout: float) -> ProbeResult:
    try:
        # Importing grpcio takes 50 ms, and only nodes with such probes need it.
        from kcm.kubelet.prober import grpc_health  # noqa: PLC0415
    except ModuleNotFoundError:
        raise ProbeError(
            "gRPC probes need the package grpcio on the node: pip install 'kcm[grpc]'"
        ) from None
    return grpc_health.check(host, port, service, timeout)


def port_of(port: int | str, probed: ProbedContainer) -> int:
    """Returns the number of a port, which may be given by its name in the container.

    Raises ProbeError.
    """
    number = port
    if isinstance(port, str):
        named = (
            container_port
            for container_port in probed.container.ports or ()
            if container_port.name == port
        )
        number = next((int(container_port.container_port) for container_port in named), port)
    if isinstance(number, str):
        if not number.isascii() or not number.isdigit():
            raise ProbeError(f'couldn\'t find port: "{port}"')
        number = int(number)
    if not 0 < number < 65536:
        raise ProbeError(f"invalid port number: {number}")
    return number
