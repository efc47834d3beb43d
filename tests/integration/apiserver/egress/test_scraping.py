"""Nodes that report no usage are scraped: good kubelets and hostile ones, over TLS."""

from __future__ import annotations

import ssl
import threading
from collections import Counter
from collections.abc import Callable, Iterator
from contextlib import contextmanager, suppress
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from typing import Any

import pytest
from prometheus_client import CollectorRegistry
from structlog.testing import capture_logs

from kcm.api.core_v1 import Node
from kcm.api.simulated import SIMULATOR_LABEL
from kcm.apimachinery.quantity import Quantity
from kcm.apiserver.cache.cacher import Cacher
from kcm.apiserver.egress.kubelet import KubeletClient
from kcm.apiserver.egress.scraping import loop as module
from kcm.apiserver.egress.scraping.loop import MOST_BYTES, UsageScraper
from kcm.apiserver.egress.scraping.rates import RESOLUTION
from kcm.helpers import node_token
from kcm.http.trust import Trust, build_context
from kcm.redisio import RedisIO
from kcm.store import Store, Subresource
from kcm.store.resource_metrics.answers import StoredMetrics
from kcm.store.resource_metrics.usage import NodeReport, UsageBoard
from kcm.testing import builders
from kcm.testing.clock import FakeClock
from kcm.testing.waiting import until
from tests import new_objects
from tests.integration.apiserver.authority import Authority

pytestmark = pytest.mark.redis_only

ADDRESS = "127.0.0.1"
API_SERVER = "kube-apiserver-kubelet-client"
LABELS = 'container="main",namespace="default",pod="web"'
FAILED, AGAIN = "A kubelet cannot be scraped", "A kubelet is scraped again"


class Handler(BaseHTTPRequestHandler):
    """Answers for a node as its kubelet, which it knows by the token."""

    protocol_version = "HTTP/1.1"
    server: Kubelets

    def do_GET(self) -> None:
        kubelets = self.server
        node = kubelets.names[self.headers["authorization"]]
        subject = self.connection.getpeercert()["subject"]
        user = dict(pair for (pair,) in subject)["commonName"]
        assert (self.path, user) == ("/metrics/resource", API_SERVER)
        kubelets.asked[node] += 1
        with suppress(OSError):
            kubelets.answers[node](self)
        self.close_connection = True

    def answer(self, body: bytes, code: int = 200) -> None:
        self.send_response(code)
        self.send_header("content-length", str(len(body)))
        self.end_headers()
        self.wfile.write(body)

    def log_message(self, format: str, *args: Any) -> None:
        """Logs nothing."""


class Kubelets(ThreadingHTTPServer):
    """The kubelets of all nodes, which differ in what they answer."""

    daemon_threads = True

    def __init__(self, tls: ssl.SSLContext, clock: FakeClock) -> None:
        super().__init__((ADDRESS, 0), Handler)
        self.socket = tls.wrap_socket(self.socket, server_side=True, do_handshake_on_connect=False)
        self.clock = clock
        self.names: dict[str, str] = {}  # of nodes, by what their requests are authorized with
        self.answers: dict[str, Callable[[Handler], None]] = {}
        self.asked: Counter[str] = Counter()
        self.sent = 0  # bytes of an endless answer
        self.go_on = threading.Event()

    def handle_error(self, request: Any, client_address: Any) -> None:
        """Tells nothing of clients that leave."""


def send_usage(handler: Handler) -> None:
    """Sends a page of upstream's kubelet: half a core on the node, a fifth in the pod."""
    at = handler.server.clock.now().timestamp()
    cpu = {"node": at * 0.5, "container": at * 0.2}
    handler.answer(
        f"# TYPE node_cpu_usage_seconds_total counter\n"
        f"node_cpu_usage_seconds_total {cpu['node']} {at * 1000:.0f}\n"
        f"node_memory_working_set_bytes 1.048576e+06 {at * 1000:.0f}\n"
        f"container_start_time_seconds{{{LABELS}}} 1\n"
        f"container_cpu_usage_seconds_total{{{LABELS}}} {cpu['container']} {at * 1000:.0f}\n"
        f"container_memory_working_set_bytes{{{LABELS}}} 2048 {at * 1000:.0f}\n".encode()
    )


def hang(handler: Handler) -> None:
    handler.server.go_on.wait(20)


def stop_in_the_middle(handler: Handler) -> None:
    handler.send_response(200)
    handler.send_header("content-length", "1000")
    handler.end_headers()
    handler.wfile.write(b"node_cpu")
    handler.server.go_on.wait(20)


def send_a_gigabyte(handler: Handler) -> None:
    handler.send_response(200)
    handler.send_header("content-length", str(1 << 30))
    handler.end_headers()
    for _ in range(1 << 10):
        handler.wfile.write(b"\n" * (1 << 20))
        handler.server.sent += 1 << 20


def send(body: bytes, code: int = 200) -> Callable[[Handler], None]:
    return lambda handler: handler.answer(body, code)


NOTHING = "the response has no usage of a node or a container"
DEADLINE = "context deadline exceeded"
HOSTILE: dict[str, tuple[Callable[[Handler], None], str]] = {
    "hangs": (hang, DEADLINE),
    "stops": (stop_in_the_middle, DEADLINE),
    "huge": (send_a_gigabyte, f"the response is larger than {MOST_BYTES} bytes"),
    "binary": (send(b"\xff\xfe\x00" * 1000), NOTHING),
    "html": (send(b"<html>node_cpu_usage_seconds_total 1</html>"), NOTHING),
    "nan": (send(b"node_cpu_usage_seconds_total NaN\nnode_memory_working_set_bytes 1\n"), NOTHING),
    "forbids": (send(b"Forbidden", 403), "forbidden"),
    "refuses": (lambda handler: handler.connection.close(), "EOF"),
    "leads-away": (send(b"", 302), "the server rejected our request for an unknown reason"),
}


class World:
    """A store with nodes, and API servers that scrape them. Time goes on by rounds."""

    def __init__(self, io: RedisIO, kubelets: Kubelets, tls: ssl.SSLContext) -> None:
        self.clock = kubelets.clock
        self.store = Store(io, self.clock)
        self.kubelets = kubelets
        self.board = UsageBoard(io)
        self.metrics = StoredMetrics(self.board, self.clock)
        self.registry = CollectorRegistry()
        self.cacher = Cacher(self.store)
        self.client = KubeletClient(tls, mixed=True)
        self.scraper = self.add_server(self.registry)

    def add_server(self, registry: CollectorRegistry | None = None) -> UsageScraper:
        registry = registry or CollectorRegistry()
        return UsageScraper(self.store, self.cacher, self.client, registry)

    def add_node(self, name: str, answer: Callable[[Handler], None] = send_usage) -> None:
        port, key = self.kubelets.server_port, node_token.ensure_key(self.store)
        token = node_token.derive_token(key, name, ADDRESS, port)
        self.kubelets.names[f"Bearer {token}"] = name
        self.kubelets.answers[name] = answer
        proof = node_token.prove_address(key, name, ADDRESS, port)
        self.store.create(
            new_objects.node(
                name,
                metadata={"annotations": {node_token.PROOF_ANNOTATION: proof}},
                status={
                    "addresses": [{"type": "InternalIP", "address": ADDRESS}],
                    "daemonEndpoints": {"kubeletEndpoint": {"Port": port}},
                },
            )
        )

    def take_round(self, *scrapers: UsageScraper) -> None:
        """Lets the time go on to the next round, and waits for its end."""
        self.clock.step(RESOLUTION)
        self.cacher.turn(0)
        for scraper in scrapers or [self.scraper]:
            self.finish(scraper)

    def finish(self, scraper: UsageScraper) -> None:
        until(lambda: scraper.turn(1.0).upkeep_in > 0, "the end of the round")

    def read_metric(self, name: str, **labels: str) -> float | None:
        return self.registry.get_sample_value(f"kcm_apiserver_{name}", labels)


@pytest.fixture(scope="module")
def kubelets(tmp_path_factory: pytest.TempPathFactory) -> Iterator[tuple[Kubelets, ssl.SSLContext]]:
    authority = Authority(tmp_path_factory.mktemp("authority"))
    served = ssl.create_default_context(ssl.Purpose.CLIENT_AUTH, cafile=str(authority.path))
    served.load_cert_chain(*authority.server(ADDRESS))
    served.verify_mode = ssl.CERT_REQUIRED
    presented = build_context(Trust(authority.path.read_bytes()))
    presented.load_cert_chain(*authority.client(API_SERVER, "system:masters"))
    server = Kubelets(served, FakeClock())
    thread = threading.Thread(target=server.serve_forever, kwargs={"poll_interval": 0.01})
    thread.start()
    yield server, presented
    server.shutdown()
    thread.join(5)
    server.server_close()


@pytest.fixture
def world(io: RedisIO, kubelets: tuple[Kubelets, ssl.SSLContext]) -> Iterator[World]:
    server, tls = kubelets
    server.go_on.clear()
    server.asked.clear()
    world = World(io, server, tls)
    yield world
    server.go_on.set()
    world.finish(world.scraper)
    world.scraper.end()


def amounts(cpu: str, memory: str) -> dict[str, Quantity]:
    return {"cpu": Quantity(cpu), "memory": Quantity(memory)}


def test_two_scrapes_show_what_a_node_and_its_pods_use(world: World) -> None:
    world.add_node("n1")
    world.take_round()
    assert world.metrics.nodes(["n1"]) == {}
    world.take_round()
    node = world.metrics.nodes(["n1"])["n1"]
    pod = world.metrics.pods([builders.pod("web", node="n1")])["default/web"]
    assert node.usage == amounts("500m", "1Mi")
    assert pod.containers == {"main": amounts("200m", "2Ki")}
    assert (pod.moment, pod.window) == (node.moment, node.window) == (world.clock.now(), 15.0)
    assert world.kubelets.asked == {"n1": 2}
    assert world.read_metric("kubelet_scrapes_total", result="success") == 2


def test_what_is_not_scraped_any_more_is_forgotten(world: World, io: RedisIO) -> None:
    world.add_node("n1")
    world.take_round()
    world.take_round()
    assert 45_000 < io.execute("PTTL", io.keys.reported("n1")) <= 60_000


def test_nodes_that_report_and_those_that_are_not_heard_of_are_left_alone(world: World) -> None:
    for name in ("reports", "simulated", "unknown"):
        world.add_node(name)
    label = {SIMULATOR_LABEL: "here"}
    world.store.modify(Node.resource, "simulated", lambda node: node.with_metadata(labels=label))
    unknown = builders.node("unknown", ready=None).status
    world.store.modify(
        Node.resource,
        "unknown",
        lambda node: node.with_status(unknown),
        subresource=Subresource.STATUS,
    )
    report = NodeReport("reports", 1.0, 10.0, amounts("1", "1Gi"))
    world.board.report([report], 60)
    for _ in range(2):
        world.take_round()
    assert world.kubelets.asked == {}
    assert world.metrics.nodes(["reports"])["reports"].usage == report.usage


def test_a_node_that_begins_to_report_is_scraped_no_longer(world: World) -> None:
    world.add_node("n1")
    for _ in range(3):
        world.take_round()
    assert world.kubelets.asked == {"n1": 3}
    world.board.report([NodeReport("n1", 1.0, 10.0, amounts("1", "1Gi"))], 60)
    world.take_round()
    assert world.kubelets.asked == {"n1": 3}
    assert world.metrics.nodes(["n1"])["n1"].usage == amounts("1", "1Gi")


def test_hostile_kubelets_cost_themselves_only_and_are_told_of_once(
    world: World, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(module, "TIMEOUT", 3.0)
    for name, (answer, _) in HOSTILE.items():
        world.add_node(name, answer)
    world.add_node("good")
    with capture_logs() as lines:
        for _ in range(2):
            world.take_round()
    assert list(world.metrics.nodes([*HOSTILE, "good"])) == ["good"]
    told = {line["node"]: line["why"] for line in lines if line["event"] == FAILED}
    assert len(told) == len(lines) == len(HOSTILE)
    for name, (_, why) in HOSTILE.items():
        assert why in told[name], name
        assert world.kubelets.asked[name] == 2
    assert world.read_metric("kubelets_failing") == len(HOSTILE)
    assert world.read_metric("kubelet_scrapes_total", result="failure") == 2 * len(HOSTILE)
    assert world.kubelets.sent < 2 * 4 * MOST_BYTES


def test_a_kubelet_that_hangs_delays_no_other_and_is_not_asked_twice_meanwhile(
    world: World,
) -> None:
    world.add_node("hangs", hang)
    world.add_node("good")

    def is_asked_again() -> bool:
        """Begins another round. It leaves out kubelets whose answers have not come yet."""
        world.clock.step(RESOLUTION)
        world.cacher.turn(0)
        world.scraper.turn(0.1)
        return world.kubelets.asked["good"] >= 3

    until(is_asked_again, "three turns of the good kubelet")
    until(lambda: world.scraper.turn(0.1) and world.metrics.nodes(["good"]), "its usage")
    assert world.kubelets.asked["hangs"] == 1


def test_kubelets_that_failed_wait_for_each_other_only(
    world: World, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(module, "AT_ONCE", 1)
    monkeypatch.setattr(module, "FAILING_AT_ONCE", 1)
    names = [f"hangs-{number}" for number in range(9)]
    for name in names:
        world.add_node(name, send(b"", 500))
    world.add_node("good")
    with ending(world.add_server()) as scraper:
        world.take_round(scraper)
        for name in names:
            world.kubelets.answers[name] = hang
        world.clock.step(RESOLUTION)
        until(
            lambda: scraper.turn(0.1) and world.kubelets.asked["good"] == 2,
            "the good kubelet's turn",
        )
        until(lambda: scraper.turn(0.1) and world.metrics.nodes(["good"]), "its usage")
        assert sum(world.kubelets.asked[name] for name in names) <= len(names) + 1


def test_a_server_that_ends_waits_for_no_kubelet(world: World) -> None:
    world.add_node("hangs", hang)
    scraper = world.add_server()
    world.clock.step(RESOLUTION)
    world.cacher.turn(0)
    until(lambda: scraper.turn(0.1) and world.kubelets.asked["hangs"], "the request")
    scraper.end()
    assert not world.kubelets.go_on.is_set()


def test_a_kubelet_that_is_well_again_is_told_of(world: World) -> None:
    world.add_node("n1", send(b"", 500))
    world.take_round()
    world.kubelets.answers["n1"] = send_usage
    with capture_logs() as lines:
        for _ in range(2):
            world.take_round()
    assert [(line["event"], line["node"]) for line in lines] == [(AGAIN, "n1")]
    assert world.read_metric("kubelets_failing") == 0


def test_a_node_that_is_deleted_fails_no_longer(world: World) -> None:
    world.add_node("n1", send(b"", 500))
    world.take_round()
    assert world.read_metric("kubelets_failing") == 1
    world.store.delete(Node.resource, "n1")
    world.take_round()
    assert world.read_metric("kubelets_failing") == 0


def test_one_api_server_scrapes_and_the_next_one_when_it_ends(world: World) -> None:
    world.add_node("n1")
    with ending(world.add_server()) as first:
        for number in (1, 2):
            world.take_round(first, world.scraper)
            assert world.kubelets.asked == {"n1": number}
    world.take_round(world.scraper)
    assert world.kubelets.asked == {"n1": 3}


@contextmanager
def ending(scraper: UsageScraper) -> Iterator[UsageScraper]:
    try:
        yield scraper
    finally:
        scraper.end()


def test_without_tls_the_log_says_what_the_kubelet_answers(world: World) -> None:
    world.client = KubeletClient()
    world.add_node("n1")
    with ending(world.add_server()) as plain, capture_logs() as lines:
        world.take_round(plain)
    (line,) = lines
    assert "malformed HTTP response" in line["why"] or "EOF" in line["why"]
