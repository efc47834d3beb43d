"""`kcm events` with dead letters and replay, `kcm status`, backup and restore."""

from __future__ import annotations

import json
from pathlib import Path

import pytest

from kcm.coordination import FencedLease
from kcm.coordination.workqueue import QueueConfig, WorkQueue
from kcm.redisio import RedisIO
from kcm.store import Store
from kcm.store.eventbus import EventBus
from kcm.testing import builders
from tests.integration.cli.conftest import Run


@pytest.fixture
def refused(io: RedisIO) -> str:
    """Returns the id of a dead letter."""
    bus = EventBus(Store(io))
    bus.ensure_group()
    io.execute("XADD", io.keys.events(), "*", "type", "ADDED", "object", "rubbish")
    for entry, fields in bus.read("test", 10):
        bus.process(entry, fields)
    return bus.list_dead_letters()[0].id


def test_dead_letters_are_shown_with_their_reason(run: Run, refused: str) -> None:
    header, line = run("events", "dead").output.splitlines()
    assert header.split() == ["ID", "TYPE", "REASON", "MESSAGE", "OBJECT"]
    assert line.startswith(refused)
    assert "BadRequest" in line
    assert "rubbish" in line
    letter = json.loads(run("events", "dead", "-o", "json").output)[0]
    assert letter["fields"] == {"type": "ADDED", "object": "rubbish"}


def test_replay_puts_a_dead_letter_back(run: Run, io: RedisIO, refused: str) -> None:
    assert run("events", "replay", refused).output == "1 event replayed\n"
    assert run("events", "dead").stderr == "No dead letters.\n"
    assert io.execute("XLEN", io.keys.events()) == 1


def test_replay_wants_ids_or_all_and_knows_them(run: Run, refused: str) -> None:
    assert run("events", "replay").exit_code == 2
    unknown = run("events", "replay", "1-0")
    assert unknown.exit_code == 1
    assert "no dead letter has the ID 1-0" in unknown.stderr
    assert run("events", "replay", "--all").output == "1 event replayed\n"


def test_events_come_newest_last_and_can_be_narrowed(run: Run, store: Store) -> None:
    for number, (name, seconds) in enumerate([("b", 20), ("a", 10)]):
        body = {
            "apiVersion": "v1",
            "kind": "Event",
            "metadata": {"name": f"e{number}", "namespace": "default"},
            "involvedObject": {"kind": "Pod", "name": name, "namespace": "default"},
            "type": "Normal",
            "reason": "Tested",
            "message": f"about {name}",
            "lastTimestamp": f"2024-01-01T00:00:{seconds}Z",
        }
        assert run("apply", "-f", "-", stdin=json.dumps(body)).exit_code == 0
    lines = run("events").output.splitlines()
    assert [line.rpartition(" ")[2] for line in lines[1:]] == ["a", "b"]
    assert len(run("events", "--for", "pod/a").output.splitlines()) == 2
    assert run("events", "--types", "Warning").stderr == "No events found in default namespace.\n"


def test_status_shows_queues_leases_streams_and_counters(
    run: Run, io: RedisIO, refused: str
) -> None:
    queue = WorkQueue(io, "replicaset")
    queue.configure(QueueConfig(task="kcm.replicaset.sync", broker_queue="workloads"))
    queue.add("default/web")
    FencedLease(io, "ingest", "me").try_acquire()
    output = run("status").output
    assert "replicaset   1       0" in output
    assert "ingest   me" in output
    assert "events:dead" in output
    status = json.loads(run("status", "-o", "json").output)
    assert status["queues"][0]["depth"] == 1
    assert status["streams"]["events:dead"] == 1
    assert status["leaders"][0]["holder"] == "me"


def test_status_says_when_nothing_runs(run: Run) -> None:
    output = run("status").output
    assert "neither a manager nor beat runs" in output
    assert "No process sent a heartbeat" in output


def test_a_backup_restores_into_an_empty_store(
    run: Run, store: Store, io: RedisIO, tmp_path: Path
) -> None:
    pod = store.create(builders.pod("a").with_metadata(resource_version=None))
    file = tmp_path / "backup.jsonl"
    assert f"2 objects written to {file}" in run("backup", str(file)).output
    assert run("restore", str(file)).exit_code == 1  # the store is not empty
    io.execute("FLUSHALL")
    assert "2 objects restored" in run("restore", str(file)).output
    assert run("get", "pod", "a", "-o", "json").output.count(pod.uid) == 1


def test_version_tells_the_servers_too(run: Run) -> None:
    output = run("version").output
    assert "kcm: 0.2.0" in output
    assert "server: " in output
