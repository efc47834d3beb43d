from __future__ import annotations

import os
import subprocess
import sys
from pathlib import Path

import pytest

from kcm.settings import Settings
from workers.refusals import find_fault_of_broker, find_fault_of_kubeconfig, find_fault_of_queues

CELERY = [sys.executable, "-m", "celery", "-A", "workers"]
WORKER = [*CELERY, "worker"]


def test_another_broker_is_refused(monkeypatch: pytest.MonkeyPatch) -> None:
    settings = Settings(redis_url="redis://r:6379/0")
    assert not find_fault_of_broker(settings)
    monkeypatch.setenv("CELERY_BROKER_URL", "redis://r:6379/0")
    assert not find_fault_of_broker(settings)
    monkeypatch.setenv("CELERY_BROKER_URL", "amqp://rabbit")
    assert "kcm's broker is the Redis of KCM_REDIS_URL" in find_fault_of_broker(settings)


def test_an_unknown_queue_is_refused_with_the_names_of_those_that_exist() -> None:
    assert not find_fault_of_queues(["nodes"], ["nodes", "ticks"])
    fault = find_fault_of_queues(["node", "ticks"], ["nodes", "ticks"])
    assert fault == "no queue is called node: there are nodes, ticks"


@pytest.mark.parametrize(
    ("command", "words"),
    [
        ([*WORKER, "-Q", "workload"], "Error: no queue is called workload: there are core, gc,"),
        (
            [*CELERY, "-b", "amqp://rabbit", "worker"],
            "Error: kcm's broker is the Redis of KCM_REDIS_URL",
        ),
        (
            [sys.executable, "-m", "kcm.cli.main", "worker", "-P", "gevent"],
            "kcm does not run in Celery's pool gevent",
        ),
    ],
)
def test_a_worker_that_cannot_work_does_not_start(
    tmp_path: Path, command: list[str], words: str
) -> None:
    environment = {**os.environ, "KCM_STATE_DIR": str(tmp_path)}
    done = subprocess.run(
        command, env=environment, capture_output=True, text=True, timeout=60, check=False
    )
    assert done.returncode != 0
    assert words in done.stderr
    assert "Traceback" not in done.stderr


def test_a_kubeconfig_that_cannot_be_used_is_refused_with_the_reason(tmp_path: Path) -> None:
    assert not find_fault_of_kubeconfig("")
    assert "none" in find_fault_of_kubeconfig(str(tmp_path / "none"))
    environment = {**os.environ, "KCM_KUBECONFIG": str(tmp_path / "none")}
    ended = subprocess.run(
        WORKER, env=environment, capture_output=True, text=True, timeout=60, check=False
    )
    assert ended.returncode == 1
    assert f"Error: kubeconfig {tmp_path / 'none'}" in ended.stderr
