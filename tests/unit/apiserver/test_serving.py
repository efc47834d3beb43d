"""The order in which a server starts and stops."""

from __future__ import annotations

import socket
import subprocess
import sys
from types import SimpleNamespace
from typing import Any, cast

from kcm.apiserver import serving


def run_serve(done: list[str]) -> None:
    """Serves with a server and an app that note what is done."""

    async def serve(sockets: list[socket.socket]) -> None:
        done.append("serve" if sockets == [listener] else "serve elsewhere")

    def wait(timeout: float) -> None:
        done.append(f"wait {timeout}")

    listener = socket.socket()
    app = SimpleNamespace(
        start=lambda: done.append("start"),
        stop=lambda: done.append("stop"),
        cacher=SimpleNamespace(wait_filled=wait),
    )
    serving.serve(cast(Any, SimpleNamespace(serve=serve)), cast(Any, app), listener)


def test_the_first_requests_wait_a_while_for_the_watch_caches() -> None:
    # in a process of its own, whose interpreter it tunes
    code = f"from {__name__} import run_serve; done = []; run_serve(done); print(*done, sep=',')"
    ran = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True)
    assert ran.stdout.strip() == f"start,wait {serving.FILL_TIMEOUT},serve,stop"
