"""A worker that is asked to end while its Redis is away."""

from __future__ import annotations

import os
import signal
import subprocess
import sys
from pathlib import Path

import psutil

from kcm.redisio.embedded import EmbeddedServer
from kcm.testing.waiting import until

ROOT = Path(__file__).parents[3]


def test_a_worker_ends_though_redis_does_not_answer(server: EmbeddedServer, tmp_path: Path) -> None:
    log = tmp_path / "log"
    environment = {
        **os.environ,
        "KCM_REDIS_URL": server.url,
        "KCM_STATE_DIR": str(tmp_path),
        "KCM_WORKER_MANAGER": "false",
        "PYTHONPATH": str(ROOT),
    }
    command = [sys.executable, "-W", "ignore", "-m", "celery", "-A", "workers", "worker", "-c", "1",
               "-E", "--without-mingle", "--without-gossip"]  # fmt: skip
    with log.open("wb") as output:
        worker = psutil.Popen(
            command, cwd=ROOT, env=environment, stdin=subprocess.DEVNULL, stdout=output,
            stderr=output,
        )  # fmt: skip
    assert server.process is not None
    try:
        until(lambda: "ready." in log.read_text(), "the worker")
        family = worker.children(recursive=True)
        assert family
        server.process.send_signal(signal.SIGSTOP)
        worker.terminate()
        assert worker.wait(100) == 0
        assert "the worker could not stop in time" in log.read_text()
        assert psutil.wait_procs(family, timeout=10)[1] == []
    finally:
        server.process.send_signal(signal.SIGCONT)
        if worker.is_running():
            worker.kill()
