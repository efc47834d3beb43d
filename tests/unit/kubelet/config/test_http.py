"""A URL with static pods on a real HTTP server."""

from __future__ import annotations

import threading
from collections.abc import Iterator
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from typing import Any

import pytest

from kcm import errors
from kcm.clock import RealClock
from kcm.kubelet.config.http import HttpSource
from kcm.kubelet.types import HTTP, Operation, PodUpdate
from kcm.testing.clock import FakeClock
from kcm.testing.waiting import until

POD = "metadata: {{name: {0}}}\nspec: {{containers: [{{name: main, image: x}}]}}\n"


class Site:
    """An HTTP server with one page, and the updates that the source sends."""

    def __init__(self) -> None:
        self.page, self.code = "", 200
        self.asked: list[dict[str, str]] = []
        self.said: list[PodUpdate] = []
        site = self

        class Handler(BaseHTTPRequestHandler):
            def do_GET(self) -> None:
                site.asked.append(dict(self.headers.items()))
                self.send_response(site.code)
                self.end_headers()
                self.wfile.write(site.page.encode())

            def log_message(self, *_: Any) -> None:
                """Logs nothing."""

        self.server = ThreadingHTTPServer(("127.0.0.1", 0), Handler)
        threading.Thread(target=self.server.serve_forever, args=(0.01,), daemon=True).start()

    @property
    def url(self) -> str:
        return f"http://127.0.0.1:{self.server.server_port}/pods"

    def source(self, **more: Any) -> HttpSource:
        return HttpSource(self.url, "n1", self.said.append, more.pop("clock", FakeClock()), **more)

    def names(self) -> list[list[str]]:
        """Returns the names of the pods of each update."""
        return [[pod.name or "" for pod in update.pods] for update in self.said]


@pytest.fixture
def site() -> Iterator[Site]:
    site = Site()
    yield site
    site.server.shutdown()
    site.server.server_close()


def test_pods_of_a_page_are_said_once_until_the_page_changes(site: Site) -> None:
    source = site.source()
    site.page = POD.format("a")
    source.fetch()
    source.fetch()
    assert site.names() == [["a-n1"]]
    assert site.said[0].op is Operation.SET
    assert site.said[0].source == HTTP
    site.page = POD.format("b")
    source.fetch()
    assert site.names() == [["a-n1"], ["b-n1"]]


def test_a_page_may_be_a_list_of_pods(site: Site) -> None:
    one = '{{"metadata": {{"name": "{0}"}}, "spec": {{"containers": [{1}]}}}}'
    main = '{"name": "m", "image": "x"}'
    pods = ", ".join(one.format(name, main) for name in "ab")
    site.page = f'{{"apiVersion": "v1", "kind": "PodList", "items": [{pods}]}}'
    site.source().fetch()
    assert site.names() == [["a-n1", "b-n1"]]


def test_an_empty_page_means_no_pods(site: Site) -> None:
    source = site.source()
    site.page = POD.format("a")
    source.fetch()
    site.page = ""
    with pytest.raises(errors.BadRequest, match="zero-length data"):
        source.fetch()
    assert site.names() == [["a-n1"], []]


@pytest.mark.parametrize(("page", "code"), [("rubbish: [", 200), ("kind: Node", 200), ("", 500)])
def test_what_cannot_be_read_leaves_all_as_it_is(site: Site, page: str, code: int) -> None:
    source = site.source()
    site.page = POD.format("a")
    source.fetch()
    site.page, site.code = page, code
    with pytest.raises((errors.KcmError, OSError)):
        source.fetch()
    assert site.names() == [["a-n1"]]


def test_headers_are_sent(site: Site) -> None:
    site.page = POD.format("a")
    site.source(headers={"Authorization": "Bearer x"}).fetch()
    assert site.asked[0]["Authorization"] == "Bearer x"


def test_it_asks_again_and_again_whatever_went_wrong(site: Site) -> None:
    source = site.source(clock=RealClock(), frequency=0.01)
    site.code = 500
    stop = threading.Event()
    thread = threading.Thread(target=source.run, args=(stop,))
    thread.start()
    until(lambda: len(site.asked) >= 2, "a second question")
    site.page, site.code = POD.format("a"), 200
    until(lambda: site.said, "the page's pods")
    stop.set()
    thread.join(10)
    assert site.names() == [["a-n1"]]
