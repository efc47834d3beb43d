"""gRPC probes of real servers with the standard health service."""

from __future__ import annotations

import socket
import subprocess
import sys
import threading
from collections.abc import Callable, Iterator
from concurrent.futures import ThreadPoolExecutor
from typing import Any, cast

import grpc
import pytest
from grpc_health.v1 import health, health_pb2, health_pb2_grpc

from kcm.api.core_v1 import PodStatus, Probe
from kcm.api.core_v1.handlers import GRPCAction
from kcm.kubelet.cri import Runtime
from kcm.kubelet.prober.grpc_health import check
from kcm.kubelet.prober.probes import Prober
from kcm.kubelet.prober.state import (
    ProbedContainer,
    ProbeError,
    ProbeKind,
    ProbeOutcome,
    ProbeResult,
)
from kcm.testing import builders
from tests.ports import free_port

PATIENT = 30.0  # seconds, where an answer comes
SERVING, SICK = health_pb2.HealthCheckResponse.SERVING, health_pb2.HealthCheckResponse.NOT_SERVING


class Odd(health_pb2_grpc.HealthServicer):  # type: ignore[misc] # grpc has no types
    """A health service whose response depends on the name of the service."""

    def __init__(self) -> None:
        self.agents: list[str] = []
        self.over = threading.Event()

    def Check(self, request: Any, context: Any) -> Any:  # noqa: N802 - as the service calls it
        self.agents += [
            text for name, text in context.invocation_metadata() if name == "user-agent"
        ]
        if request.service == "slow":
            self.over.wait(PATIENT)
        if request.service == "forbidden":
            context.abort(grpc.StatusCode.PERMISSION_DENIED, "not you")
        if request.service == "new":
            return health_pb2.HealthCheckResponse(status=17)
        return health_pb2.HealthCheckResponse(status=SERVING)


class Server:
    """A gRPC server on a free port."""

    def __init__(self, add: Callable[[grpc.Server], None] = lambda _: None) -> None:
        self._pool = ThreadPoolExecutor(2)
        self._server = grpc.server(self._pool)
        self.port = self._server.add_insecure_port("127.0.0.1:0")
        add(self._server)
        self._server.start()

    def ask(self, service: str = "", timeout: float = PATIENT) -> ProbeResult:
        return check("127.0.0.1", self.port, service, timeout)

    def close(self) -> None:
        self._server.stop(None).wait()
        self._pool.shutdown()


@pytest.fixture
def serve() -> Iterator[Callable[..., Server]]:
    servers: list[Server] = []

    def start(*servicers: Any) -> Server:
        def add(server: grpc.Server) -> None:
            for one in servicers:
                health_pb2_grpc.add_HealthServicer_to_server(one, server)

        servers.append(Server(add))
        return servers[-1]

    yield start
    for server in servers:
        server.close()


@pytest.mark.parametrize(
    ("service", "expected"),
    [
        ("", ProbeResult(ProbeOutcome.SUCCESS, "service healthy")),
        ("good", ProbeResult(ProbeOutcome.SUCCESS, "service healthy")),
        (
            "bad",
            ProbeResult(ProbeOutcome.FAILURE, 'service unhealthy (responded with "NOT_SERVING")'),
        ),
        (
            "ghost",
            ProbeResult(
                ProbeOutcome.FAILURE,
                "error: health rpc probe failed: rpc error: code = NotFound desc = ",
            ),
        ),
    ],
)
def test_a_probe_goes_by_what_the_health_service_says(
    serve: Callable[..., Server], service: str, expected: ProbeResult
) -> None:
    standard = health.HealthServicer()
    for name, status in (("", SERVING), ("good", SERVING), ("bad", SICK)):
        standard.set(name, status)
    assert serve(standard).ask(service) == expected


@pytest.mark.parametrize(
    ("service", "output"),
    [
        (
            "forbidden",
            "error: health rpc probe failed: rpc error: code = PermissionDenied desc = not you",
        ),
        ("new", 'service unhealthy (responded with "17")'),
    ],
)
def test_other_answers_are_failures(
    serve: Callable[..., Server], service: str, output: str
) -> None:
    assert serve(Odd()).ask(service) == ProbeResult(ProbeOutcome.FAILURE, output)


def test_a_server_that_does_not_answer_in_time_fails(serve: Callable[..., Server]) -> None:
    odd = Odd()
    result = serve(odd).ask("slow", timeout=3.0)
    odd.over.set()
    assert result == ProbeResult(
        ProbeOutcome.FAILURE, "timeout: health rpc did not complete within 3s"
    )


def test_a_server_without_the_health_service_fails(serve: Callable[..., Server]) -> None:
    result = serve().ask()
    assert result.outcome is ProbeOutcome.FAILURE
    assert result.output.startswith(
        "error: this server does not implement the grpc health protocol (grpc.health.v1.Health): "
    )


def test_the_server_sees_a_kube_probe(serve: Callable[..., Server]) -> None:
    odd = Odd()
    serve(odd).ask()
    assert [agent.split()[0] for agent in odd.agents] == ["kube-probe/1.36"]


def test_where_nobody_listens_the_time_runs_out() -> None:
    with socket.socket() as taken:
        taken.bind(("127.0.0.1", 0))
        port = taken.getsockname()[1]
    assert check("127.0.0.1", port, "", 1.0).output == (
        f'timeout: failed to connect service "127.0.0.1:{port}" within 1s: '
        "context deadline exceeded"
    )


def subject(port: int, service: str | None = None) -> ProbedContainer:
    pod = builders.pod(containers=[builders.container()])
    probe = Probe(grpc=GRPCAction(port=port, service=service), timeout_seconds=int(PATIENT))
    return ProbedContainer(ProbeKind.LIVENESS, pod, pod.spec.containers[0], probe)


def probe(port: int, service: str | None = None) -> ProbeResult:
    prober = Prober(cast("Runtime", None))  # no runtime is asked
    try:
        return prober.probe(subject(port, service), PodStatus(pod_ip="127.0.0.1"), "id-1")
    finally:
        prober.close()


def test_a_pods_probe_asks_its_address_for_the_service_it_names(
    serve: Callable[..., Server],
) -> None:
    server = serve(Odd())
    assert probe(server.port).outcome is ProbeOutcome.SUCCESS
    assert "PermissionDenied" in probe(server.port, "forbidden").output


def test_without_the_library_a_probe_cannot_be_made(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setitem(sys.modules, "grpc", None)
    monkeypatch.delitem(sys.modules, "kcm.kubelet.prober.grpc_health")
    monkeypatch.delattr("kcm.kubelet.prober.grpc_health")
    with pytest.raises(ProbeError, match=r"pip install 'kcm\[grpc\]'"):
        probe(1)


def test_a_kubelet_without_such_probes_does_not_load_the_library() -> None:
    script = "import sys, kcm.kubelet.assembly.kubelet; sys.exit('grpc' in sys.modules)"
    assert subprocess.run([sys.executable, "-c", script], check=False).returncode == 0


def test_the_proxy_of_the_environment_is_not_used(monkeypatch: pytest.MonkeyPatch) -> None:
    for name in ("grpc_proxy", "http_proxy"):
        monkeypatch.setenv(name, f"http://127.0.0.1:{free_port()}")  # nobody listens
    for name in ("no_grpc_proxy", "no_proxy", "NO_PROXY"):
        monkeypatch.delenv(name, raising=False)
    server = Server(lambda added: health_pb2_grpc.add_HealthServicer_to_server(Odd(), added))
    try:
        assert server.ask().outcome is ProbeOutcome.SUCCESS
    finally:
        server.close()
