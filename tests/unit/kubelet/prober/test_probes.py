"""Single probes of servers on this machine."""

from __future__ import annotations

import socket
import threading
from collections.abc import Iterator, Sequence
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from typing import Any, cast

import pytest

from kcm import errors
from kcm.api.core_v1 import Container, ContainerPort, ExecAction, HTTPGetAction, PodStatus, Probe
from kcm.api.core_v1.handlers import TCPSocketAction
from kcm.kubelet.cri import ExecResult, Runtime
from kcm.kubelet.prober.probes import Prober, http_request, port_of
from kcm.kubelet.prober.state import (
    USER_AGENT,
    ProbedContainer,
    ProbeError,
    ProbeKind,
    ProbeOutcome,
    ProbeResult,
)
from kcm.testing import builders

HERE = PodStatus(pod_ip="127.0.0.1")


class Handler(BaseHTTPRequestHandler):
    def do_GET(self) -> None:
        code = int(self.path.strip("/").partition("/")[0] or 200)
        self.send_response(code)
        if code == 302:
            self.send_header("location", "/200")
        if code == 307:
            self.send_header("location", "http://localhost.invalid/")
        self.end_headers()
        self.wfile.write(b"body " + self.headers["user-agent"].encode())

    def log_message(self, format: str, *args: Any) -> None:
        """Logs nothing."""


class Commands:
    """Runs no commands: returns or raises what it is given."""

    def __init__(self, answer: ExecResult | Exception) -> None:
        self.answer = answer
        self.asked: list[tuple[str, Sequence[str], float]] = []

    def exec_sync(self, container: str, command: Sequence[str], timeout: float) -> ExecResult:
        self.asked.append((container, command, timeout))
        if isinstance(self.answer, Exception):
            raise self.answer
        return self.answer


def subject(probe: Probe) -> ProbedContainer:
    ports = [ContainerPort(name="http", container_port=8080)]
    pod = builders.pod(containers=[builders.container(ports=ports)])
    return ProbedContainer(ProbeKind.LIVENESS, pod, pod.spec.containers[0], probe)


def run_probe(probe: Probe, answer: ExecResult | Exception | None = None) -> ProbeResult:
    commands = Commands(answer or ExecResult(b"", b"", 0))
    prober = Prober(cast("Runtime", commands))  # what is asked of it
    try:
        return prober.probe(subject(probe), HERE, "id-1")
    finally:
        prober.close()


@pytest.fixture(scope="module")
def port() -> Iterator[int]:
    server = ThreadingHTTPServer(("127.0.0.1", 0), Handler)
    server.daemon_threads = True
    thread = threading.Thread(target=server.serve_forever, kwargs={"poll_interval": 0.01})
    thread.start()
    yield server.server_port
    server.shutdown()
    thread.join(5)
    server.server_close()


@pytest.fixture
def closed_port() -> int:
    with socket.socket() as taken:
        taken.bind(("127.0.0.1", 0))
        return int(taken.getsockname()[1])


@pytest.mark.parametrize(
    ("path", "outcome", "output"),
    [
        ("/200", ProbeOutcome.SUCCESS, "body kube-probe/1.36"),
        ("399", ProbeOutcome.SUCCESS, "body kube-probe/1.36"),
        ("/302", ProbeOutcome.SUCCESS, "body kube-probe/1.36"),
        (
            "/307", ProbeOutcome.WARNING,
            "Probe terminated redirects, Response body: body kube-probe/1.36",
        ),
        ("/404", ProbeOutcome.FAILURE, "HTTP probe failed with statuscode: 404"),
        ("/503", ProbeOutcome.FAILURE, "HTTP probe failed with statuscode: 503"),
    ],
)  # fmt: skip
def test_an_http_probe_goes_by_the_status_code(
    port: int, path: str, outcome: ProbeOutcome, output: str
) -> None:
    result = run_probe(Probe(http_get=HTTPGetAction(path=path, port=port)))
    assert result == ProbeResult(outcome, output)


def test_nobody_listens(closed_port: int) -> None:
    result = run_probe(Probe(http_get=HTTPGetAction(port=closed_port)))
    text = f"dial tcp 127.0.0.1:{closed_port}: connect: connection refused"
    assert result == ProbeResult(
        ProbeOutcome.FAILURE, f'Get "http://127.0.0.1:{closed_port}/": {text}'
    )
    result = run_probe(Probe(tcp_socket=TCPSocketAction(port=closed_port)))
    assert result == ProbeResult(ProbeOutcome.FAILURE, text)


def test_somebody_listens(port: int) -> None:
    assert run_probe(Probe(tcp_socket=TCPSocketAction(port=port))).outcome is ProbeOutcome.SUCCESS


@pytest.mark.parametrize(
    ("answer", "expected"),
    [
        (ExecResult(b"out", b"err", 0), ProbeResult(ProbeOutcome.SUCCESS, "outerr")),
        (ExecResult(b"out", b"err", 3), ProbeResult(ProbeOutcome.FAILURE, "outerr")),
        (
            errors.ExecTimeout(),
            ProbeResult(ProbeOutcome.FAILURE, 'command timed out: "cat /x" timed out after 1s'),
        ),
    ],
)
def test_a_command_goes_by_its_exit_code(
    answer: ExecResult | Exception, expected: ProbeResult
) -> None:
    assert run_probe(Probe(exec=ExecAction(command=["cat", "/x"])), answer) == expected


@pytest.mark.parametrize(
    ("probe", "text"),
    [
        (Probe(exec=ExecAction(command=["x"])), "rpc error: not running"),
        (Probe(), "missing probe handler for default/web-1:c"),
        (Probe(http_get=HTTPGetAction(port="ghost")), 'couldn\'t find port: "ghost"'),
        (Probe(tcp_socket=TCPSocketAction(port=70000)), "invalid port number: 70000"),
    ],
)
def test_what_cannot_be_probed_is_an_error(probe: Probe, text: str) -> None:
    with pytest.raises(ProbeError) as caught:
        run_probe(probe, errors.ContainerRuntimeError("not running"))
    assert caught.value.message == text


def test_a_request_says_what_the_probe_asks_for() -> None:
    action = HTTPGetAction(
        path="healthz?full=1", port="http", scheme="HTTPS", host="::1",
        http_headers=[{"name": "X-One", "value": "1"}, {"name": "user-agent", "value": "me"},
                      {"name": "Accept", "value": ""}],
    )  # fmt: skip
    url, headers = http_request(subject(Probe(http_get=action)), "10.0.0.1")
    assert url == "https://[::1]:8080/healthz?full=1"
    assert sorted(headers) == [("User-Agent", "me"), ("X-One", "1")]


@pytest.mark.parametrize(
    ("given", "sent"),
    [
        ([], [("Accept", "*/*"), ("User-Agent", USER_AGENT)]),
        ([("X-Muffins-Or-Cupcakes", "muffins")], [("X-Muffins-Or-Cupcakes", "muffins")]),
        ([("X-A", "1"), ("X-A", "2")], [("X-A", "1"), ("X-A", "2")]),
        ([("X-Empty", "")], [("X-Empty", "")]),
        ([("accept", "a"), ("Accept", "b")], [("Accept", "a"), ("Accept", "b")]),
        ([("Host", "one"), ("host", "two")], [("Host", "one")]),
        ([("User-Agent", "")], [("Accept", "*/*")]),
    ],
)
def test_headers_are_sent_as_often_as_they_are_given(
    given: list[tuple[str, str]], sent: list[tuple[str, str]]
) -> None:
    """TestHTTPHeaders (prober_test.go) and TestHTTPProbeChecker (http_test.go)."""
    headers = [{"name": name, "value": value} for name, value in given]
    action = HTTPGetAction.model_validate({"port": 80, "httpHeaders": headers})
    actual = http_request(subject(Probe(http_get=action)), "10.0.0.1")[1]
    named = {name for name, _ in sent}
    assert [pair for pair in sorted(actual) if pair[0] in named] == sent
    assert not [name for name, value in actual if name == "User-Agent" and not value]


@pytest.mark.parametrize(
    ("command", "env", "run"),
    [
        (["sh", "$(A)"], [{"name": "A", "value": "a"}], ["sh", "a"]),
        (["$(A)$(B)"], [{"name": "A", "value": "a"}], ["a$(B)"]),
        (["$$(A)"], [{"name": "A", "value": "a"}], ["$(A)"]),
        (
            ["$(POD)"],
            [{"name": "POD", "valueFrom": {"fieldRef": {"fieldPath": "metadata.name"}}}],
            [""],
        ),
    ],
)
def test_a_probes_command_knows_the_containers_variables(
    command: list[str], env: list[dict[str, Any]], run: list[str]
) -> None:
    """TestExecProbe..., and TestExpandContainerCommandOnlyStatic (container/helpers_test.go)."""
    container = Container.model_validate({"name": "c", "env": env})
    pod = builders.pod(containers=[container])
    probe = Probe(exec=ExecAction(command=command))
    commands = Commands(ExecResult(b"", b"", 0))
    prober = Prober(cast("Runtime", commands))  # what is asked of it
    prober.probe(ProbedContainer(ProbeKind.LIVENESS, pod, container, probe), HERE, "1")
    prober.close()
    assert commands.asked[0][1] == run


@pytest.mark.parametrize(("port", "number"), [(80, 80), ("http", 8080), ("90", 90)])
def test_ports_have_numbers_or_names(port: int | str, number: int) -> None:
    assert port_of(port, subject(Probe())) == number
