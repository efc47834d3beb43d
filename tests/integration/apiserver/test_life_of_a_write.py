"""A create takes the way that docs/architecture.md describes, file by file."""

from __future__ import annotations

import re
import threading
from collections.abc import Iterator, Sequence
from itertools import groupby
from pathlib import Path
from types import FrameType

import greenlet
import pytest

from kcm.redisio.embedded import EmbeddedServer
from tests.docs.pages import ROOT
from tests.integration.apiserver.serving import live

PATH = "/api/v1/namespaces/default/configmaps"
SCRIPT = "kcm/redisio/lua/store_write.lua"
FILTERS = "kcm/apiserver/filters/"
# Pages that have lists of what is called. They are not called themselves by a request.
LISTS = {"kcm/apiserver/filters/chain.py", "kcm/store/admission/plugins.py"}


def read_page() -> list[list[str]]:
    """Returns the files of each step of the page: what is indented is of the step before."""
    text = (ROOT / "docs" / "architecture.md").read_text("utf-8")
    section = text.partition("\n## The life of a write\n")[2].partition("\n## ")[0]
    steps: list[list[str]] = []
    for line in section.splitlines():
        named = re.findall(r"`(kcm/[^`]+\.(?:py|lua))`", line)
        if re.match(r"\d+\. ", line):
            steps.append(named)
        elif line.startswith("    - "):
            steps[-1] += named
    return steps


def modules() -> list[str]:
    """Returns the modules that a request comes to, in the page's order."""
    named = (name for step in read_page() for name in step)
    return [name for name in named if name != SCRIPT and name not in LISTS]


class Follower:
    """Notes which modules of kcm the event loop's thread calls for a create, and what is on its
    stack at the script.
    """

    def __init__(self) -> None:
        self.active = False
        self._by_thread: dict[int, list[str]] = {}  # in the order of the first call of each
        self._stacks: dict[int, list[str]] = {}

    def __call__(self, frame: FrameType, event: str, argument: object) -> None:
        if event != "call" or not self.active or (module := module_of(frame)) is None:
            return
        thread = threading.get_ident()
        called = self._by_thread.setdefault(thread, [])
        if module not in called:
            called.append(module)
        if module == "kcm/redisio/connection.py" and frame.f_code.co_name == "_evalsha":
            self._stacks[thread] = list(reversed(list(list_stack(frame))))

    @property
    def called(self) -> list[str]:
        return self._by_thread[self._loop]

    @property
    def way(self) -> list[str]:
        """The modules on the stack at the script, from the app on."""
        stack = [module for module, _ in groupby(self._stacks[self._loop])]
        return stack[stack.index("kcm/apiserver/app.py") :]

    @property
    def _loop(self) -> int:
        """The thread of the event loop: the one that called filters."""
        (thread,) = (one for one, names in self._by_thread.items() if f"{FILTERS}audit.py" in names)
        return thread


def module_of(frame: FrameType) -> str | None:
    path = Path(frame.f_code.co_filename)
    return str(path.relative_to(ROOT)) if path.is_relative_to(ROOT / "kcm") else None


def list_stack(frame: FrameType | None) -> Iterator[str]:
    """Yields the modules of a stack from the innermost frame, and of the greenlets around it."""
    current: greenlet.greenlet | None = greenlet.getcurrent()
    while current is not None:
        while frame is not None:
            if (module := module_of(frame)) is not None:
                yield module
            frame = frame.f_back
        current = current.parent
        frame = current.gr_frame if current is not None else None


@pytest.fixture(scope="module")
def followed(
    redis_server: EmbeddedServer, tmp_path_factory: pytest.TempPathFactory
) -> Iterator[Follower]:
    follower = Follower()
    threading.setprofile(follower)  # for threads that start from here on: the server's
    try:
        with live(redis_server.url, tmp_path_factory.mktemp("life")) as api:
            for name in ("first", "second"):  # the first one fills what is remembered
                follower.active = name == "second"
                api.create(PATH, {"metadata": {"name": name}, "data": {"a": "b"}})
            follower.active = False
            yield follower
    finally:
        threading.setprofile(None)


def in_order(names: Sequence[str], whole: Sequence[str]) -> list[str]:
    """Returns those of the names that are in `whole`, in the order of `whole`."""
    return [name for name in whole if name in names]


def test_a_create_comes_to_each_file_in_the_order_of_the_page(followed: Follower) -> None:
    assert in_order(modules(), followed.called) == modules()


def test_no_file_is_left_and_entered_again_on_the_way_to_the_script(followed: Follower) -> None:
    way = followed.way
    assert len(way) == len(set(way)), way
    assert in_order(way, modules()) == in_order(modules(), way)
    assert set(way) - set(modules()) == {"kcm/redisio/greenlets.py"}  # which runs what it is given


def test_the_page_is_short_and_names_what_exists() -> None:
    named = [name for step in read_page() for name in step]
    assert not [name for name in named if not (ROOT / name).exists()]
    assert len(named) == len(set(named))
    # The filters are one list on one page.
    assert len([name for name in modules() if not name.startswith(FILTERS)]) + 1 <= 20
