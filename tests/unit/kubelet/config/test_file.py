"""A manifest folder: it is read when files change, and an invalid file is reported once."""

from __future__ import annotations

import threading
from collections.abc import Iterator
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from pathlib import Path
from typing import Any

import pytest

from kcm import errors
from kcm.clock import RealClock
from kcm.kubelet.config.file import FileSource, HttpSource
from kcm.kubelet.types import HTTP, Operation, PodUpdate
from kcm.testing.clock import FakeClock
from kcm.testing.waiting import until

POD = "metadata: {{name: {0}}}\nspec: {{containers: [{{name: main, image: x}}]}}\n"


class Folder:
    def __init__(self, path: Path) -> None:
        self.path = path
        self.sent: list[PodUpdate] = []
        self.invalid: list[str] = []
        self.source = FileSource(
            path, "n1", self.sent.append, FakeClock(),
            report_invalid=lambda file, _: self.invalid.append(Path(file).name),
        )  # fmt: skip

    def write(self, name: str, text: str) -> None:
        temporary = self.path / ".new"
        temporary.write_text(text)
        temporary.replace(self.path / name)

    def pods(self) -> list[str]:
        """Scans the folder; returns the names of the pods that the source sends."""
        self.source.scan()
        self.source.send_all()
        return sorted(pod.name or "" for pod in self.sent[-1].pods)


def test_files_come_change_and_go(tmp_path: Path) -> None:
    folder = Folder(tmp_path)
    assert folder.pods() == []
    folder.write("a.yaml", POD.format("a"))
    folder.write("b.yaml", POD.format("b"))
    folder.write(".hidden.yaml", POD.format("c"))
    assert folder.pods() == ["a-n1", "b-n1"]
    assert not folder.source.scan()
    folder.write("a.yaml", POD.format("other"))
    (tmp_path / "b.yaml").unlink()
    assert folder.pods() == ["other-n1"]


def test_a_broken_file_touches_no_other_and_keeps_what_it_said_before(tmp_path: Path) -> None:
    folder = Folder(tmp_path)
    folder.write("a.yaml", POD.format("a"))
    folder.write("b.yaml", "kind: [")
    assert folder.pods() == ["a-n1"]
    folder.write("a.yaml", "half of it: {")
    assert folder.pods() == ["a-n1"]
    assert folder.pods() == ["a-n1"]
    assert folder.invalid == ["b.yaml", "a.yaml"]
    folder.write("b.yaml", POD.format("b"))
    assert folder.pods() == ["a-n1", "b-n1"]


def test_one_file_will_do(tmp_path: Path) -> None:
    file = tmp_path / "pod.yaml"
    file.write_text(POD.format("a"))
    assert Folder(file).pods() == ["a-n1"]


def test_a_folder_that_is_not_there_has_no_pods(tmp_path: Path) -> None:
    assert Folder(tmp_path / "none").pods() == []


# --- A URL with static pods on a real HTTP server.


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
