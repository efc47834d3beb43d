"""One probe: a command, an HTTP request, a connection, a gRPC call.

Source: pkg/kubelet/prober/prober.go and pkg/probe/{exec,http,tcp,grpc}, Kubernetes 1.33.
Departure: an answer's headers are not limited in size.
"""

from __future__ import annotations

import logging
import os
import socket
import time

import httpx

from kcm import errors
from kcm.api.core_v1 import PodStatus
from kcm.apimachinery.durations import printed
from kcm.kubelet.cri import Runtime
from kcm.kubelet.environment.expansion import expand_all
from kcm.kubelet.prober.outcomes import USER_AGENT, ProbeError, ProbeOutcome, ProbeResult
from kcm.kubelet.prober.state import DEFAULT_TIMEOUT, Subject

ATTEMPTS = 3  # at a probe that cannot be made
_MOST = 10 * 1024  # bytes of output that are told
_REDIRECTS = 10
_DEFAULTS = {"user-agent": USER_AGENT, "accept": "*/*", "host": ""}


class Prober:
    """Makes probes; thread-safe."""

    def __init__(self, runtime: Runtime) -> None:
        self._runtime = runtime
        # It tells of each request, and there is one for each probe.
        logging.getLogger("httpx").setLevel(logging.WARNING)
        # Probes are about the pod, not about who signed its certificate; upstream neither
        # checks it nor keeps connections.
        self._http = httpx.Client(
            verify=False,
            trust_env=False,
            limits=httpx.Limits(max_keepalive_connections=0),
        )

    def close(self) -> None:
        self._http.close()

    def probe(self, subject: Subject, status: PodStatus, container_id: str) -> ProbeResult:
        """Probe once; what cannot be made is tried three times. Raises ProbeError."""
        for left in reversed(range(ATTEMPTS)):
            try:
                return self._once(subject, status, container_id)
            except ProbeError:
                if not left:
                    raise
        raise AssertionError

    def _once(self, subject: Subject, status: PodStatus, container_id: str) -> ProbeResult:
        spec = subject.spec
        timeout = float(spec.timeout_seconds or DEFAULT_TIMEOUT)
        if spec.exec is not None:
            # Values that the pod's spec has in plain; what comes from elsewhere stays as it is.
            known = {one.name: one.value or "" for one in subject.container.env or ()}
            command = list(expand_all(spec.exec.command or (), known))
            return self._exec(container_id, command, timeout)
        if spec.http_get is not None:
            return self._get(subject, status.pod_ip or "", timeout)
        if spec.tcp_socket is not None:
            host = spec.tcp_socket.host or status.pod_ip or ""
            return _connect(host, port_of(spec.tcp_socket.port, subject), timeout)
        if spec.grpc is not None:
            service = spec.grpc.service or ""
            return _check(status.pod_ip or "", int(spec.grpc.port), service, timeout)
        raise ProbeError(f"missing probe handler for {subject.pod.key}:{subject.container.name}")

    def _exec(self, container_id: str, command: list[str], timeout: float) -> ProbeResult:
        try:
            result = self._runtime.exec_sync(container_id, command, timeout)
        except errors.ExecTimeout:
            within = printed(timeout)
            text = f'command timed out: "{" ".join(command)}" timed out after {within}'
            return ProbeResult(ProbeOutcome.FAILURE, text)
        except errors.ContainerRuntimeError as error:
            raise ProbeError(f"rpc error: {error.message}") from error
        said = (result.stdout + result.stderr)[:_MOST].decode(errors="replace")
        return ProbeResult(ProbeOutcome.FAILURE if result.exit_code else ProbeOutcome.SUCCESS, said)

    def _get(self, subject: Subject, address: str, timeout: float) -> ProbeResult:
        until = time.monotonic() + timeout
        url, headers = http_request(subject, address)
        try:
            where = httpx.URL(url)
        except httpx.InvalidURL as error:
            raise ProbeError(f"{url}: {error}") from None
        try:
            for _ in range(_REDIRECTS):
                with self._http.stream(
                    "GET", where, headers=headers, timeout=max(until - time.monotonic(), 0.001)
                ) as answer:
                    body = _read(answer, until)
                    if answer.next_request is None:
                        return _judged(answer.status_code, url, body)
                    if answer.next_request.url.host != where.host:
                        text = f"Probe terminated redirects, Response body: {body}"
                        return ProbeResult(ProbeOutcome.WARNING, text)
                    where = answer.next_request.url
        except httpx.TimeoutException:
            text = f'Get "{url}": context deadline exceeded (Client.Timeout exceeded)'
            return ProbeResult(ProbeOutcome.FAILURE, text)
        except (httpx.HTTPError, OSError, ValueError) as error:
            return ProbeResult(ProbeOutcome.FAILURE, f'Get "{url}": {_told(error, where)}')
        return ProbeResult(
            ProbeOutcome.FAILURE, f'Get "{url}": stopped after {_REDIRECTS} redirects'
        )


Headers = list[tuple[str, str]]


def http_request(subject: Subject, address: str) -> tuple[str, Headers]:
    """The URL and the headers of an HTTP probe. Raises ProbeError."""
    action = subject.spec.http_get
    assert action is not None
    host = action.host or address
    shown = f"[{host}]" if ":" in host else host
    path = action.path or "/"
    path = path if path.startswith("/") else f"/{path}"
    scheme = (action.scheme or "HTTP").lower()
    given = [(header.name, header.value or "") for header in action.http_headers or ()]
    return f"{scheme}://{shown}:{port_of(action.port, subject)}{path}", _with_defaults(given)


def _with_defaults(given: Headers) -> Headers:
    """The headers in their order, repeated ones too; of Host, the first counts. An empty value
    takes a default header away."""
    named: dict[str, list[str]] = {}
    for name, value in given:
        named.setdefault(name.lower(), []).append(value)
    found = [(name, value) for name, value in given if name.lower() not in _DEFAULTS]
    for name, default in _DEFAULTS.items():
        values = named.get(name, [default])
        kept = values[:1] if name == "host" else values
        found += [(name.title(), value) for value in kept if values[0]]
    return found


def _read(answer: httpx.Response, until: float) -> str:
    body = b""
    for piece in answer.iter_raw():
        body += piece
        if len(body) >= _MOST:
            break
        if time.monotonic() > until:
            raise httpx.ReadTimeout("the answer did not end in time")
    return body[:_MOST].decode(errors="replace")


def _told(error: BaseException, where: httpx.URL) -> str:
    """A failed connection in upstream's words; the cause is below httpx' own errors."""
    cause: BaseException | None = error
    while cause is not None:
        if isinstance(cause, OSError) and cause.errno and cause.errno > 0:
            why = os.strerror(cause.errno).lower()
            return f"dial tcp {where.host}:{where.port or 80}: connect: {why}"
        cause = cause.__cause__ or cause.__context__
    return str(error)


def _judged(code: int, url: str, body: str) -> ProbeResult:
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


def _check(host: str, port: int, service: str, timeout: float) -> ProbeResult:
    try:
        # Only nodes with such probes need its library, which takes 50 ms to import.
        from kcm.kubelet.prober import grpc_health  # noqa: PLC0415
    except ModuleNotFoundError:
        raise ProbeError(
            "gRPC probes need the package grpcio on the node: pip install 'kcm[grpc]'"
        ) from None
    return grpc_health.check(host, port, service, timeout)


def port_of(port: int | str, subject: Subject) -> int:
    """A port by its number, or by its name in the container. Raises ProbeError."""
    number = port
    if isinstance(port, str):
        named = (one for one in subject.container.ports or () if one.name == port)
        number = next((int(one.container_port) for one in named), port)
    if isinstance(number, str):
        if not number.isascii() or not number.isdigit():
            raise ProbeError(f'couldn\'t find port: "{port}"')
        number = int(number)
    if not 0 < number < 65536:
        raise ProbeError(f"invalid port number: {number}")
    return number
