"""Threads are started by the hosts of loops, so that each is named, watched and ended."""

from __future__ import annotations

import re
from pathlib import Path

ROOT = Path(__file__).parents[3]
# Each server with an event loop has one thread, and what blocks has pools with names.
SERVERS = {
    "kcm/apiserver/http/threads.py": "the API server's pools",
    "kcm/kubelet/server/serving.py": "the kubelet's API",
    "kcm/testing/control_plane/api.py": "the API server inside a test",
    "kcm/testing/control_plane/loop.py": "the thread that steps the loops inside a test",
}
ELSEWHERE = {
    "kcm/loops/threads.py": "the host",
    "kcm/memory.py": "one call of C, in a module below the hosts",
}


def list_starts(pattern: str) -> set[str]:
    """Returns the files of kcm and workers that have this text."""
    files = [*(ROOT / "kcm").rglob("*.py"), *(ROOT / "workers").rglob("*.py")]
    return {str(file.relative_to(ROOT)) for file in files if re.search(pattern, file.read_text())}


def test_no_other_module_starts_a_thread() -> None:
    assert list_starts(r"(?<![a-zA-Z])Thread\(") == SERVERS.keys() | ELSEWHERE.keys()


def test_every_pool_has_a_name() -> None:
    pools = list_starts(r"\bThreadPoolExecutor\(")
    assert pools == list_starts(r'\bThreadPoolExecutor\([^\n]*"kcm-')
