"""Messages that are none, pushed at a real worker: none ends it, none comes back."""

from __future__ import annotations

import base64
import json
import os
import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import psutil
import pytest
from kombu import Connection

from kcm.api.scheme import BUILT_IN
from kcm.redisio import RedisIO
from kcm.redisio.embedded import EmbeddedServer
from kcm.settings import Settings
from kcm.store import Store
from kcm.testing.waiting import until
from tests.new_objects import replica_set
from workers.app import create_app
from workers.broker import broker_url, transport_options
from workers.remotecontrol import ANSWERED, REFUSAL
from workers.transport import HANDED_BACK, MOST_RETURNS

ROOT = Path(__file__).parents[3]
PODS = BUILT_IN.lookup("pods")
QUEUES = ("workloads", "ticks")


def envelope(**changes: Any) -> dict[str, Any]:
    """A good message, changed."""
    task = {"task": "kcm.replicaset.sync", "id": "an-id", "lang": "py"}
    properties = {
        "delivery_tag": "a-tag",
        "delivery_info": {"exchange": "", "routing_key": "workloads"},
        "body_encoding": "utf-8",
    }
    body = {
        "body": json.dumps([["default/none"], {}, {}]),
        "content-encoding": "utf-8",
        "content-type": "application/json",
        "headers": task,
        "properties": properties,
    }
    return {name: value for name, value in (body | changes).items() if value is not ...}


def headers(**changes: Any) -> dict[str, Any]:
    headers_of_message = envelope()["headers"] | changes
    return envelope(
        headers={name: value for name, value in headers_of_message.items() if value is not ...}
    )


def properties(**changes: Any) -> dict[str, Any]:
    properties_of_message = envelope()["properties"] | changes
    return envelope(
        properties={name: v for name, v in properties_of_message.items() if v is not ...}
    )


DEEP = "[" * 5000
BAD: dict[str, Any] = {
    "not JSON": b"rubbish",
    "empty": b"",
    "bytes": b"\xff\xfe\x00",
    "deep": DEEP.encode(),
    "null": None,
    "a list": [],
    "a number": 7,
    "an empty object": {},
    "huge": envelope(body="x" * (2 << 20)),
    "no body": envelope(body=...),
    "null body": envelope(body=None),
    "empty body": envelope(body=""),
    "number body": envelope(body=7),
    "list body": envelope(body=[]),
    "body of rubbish": envelope(body="rubbish"),
    "body of an object": envelope(body="{}"),
    "body too short": envelope(body="[[]]"),
    "args no list": envelope(body='["x", {}, {}]'),
    "kwargs no object": envelope(body="[[], [], {}]"),
    "embed no object": envelope(body="[[], {}, 7]"),
    "callbacks": envelope(body='[[], {}, {"callbacks": [{"task": "kcm.ttl"}]}]'),
    "chain": envelope(body='[[], {}, {"chain": ["x"]}]'),
    "base64 of rubbish": properties(body_encoding="base64"),
    "unknown encoding": properties(body_encoding="rot13"),
    "pickle": envelope(**{"content-type": "application/x-python-serialize"}),
    "no content type": envelope(**{"content-type": ...}),
    "odd content encoding": envelope(**{"content-encoding": "utf-7"}),
    "no headers": envelope(headers=...),
    "null headers": envelope(headers=None),
    "list headers": envelope(headers=[]),
    "no task": headers(task=...),
    "null task": headers(task=None),
    "object task": headers(task={}),
    "unknown task": headers(task="kcm.unknown"),
    "task of Celery": headers(task="celery.backend_cleanup"),
    "no id": headers(id=...),
    "number id": headers(id=7),
    "odd timelimit": headers(timelimit="x"),
    "short timelimit": headers(timelimit=[1]),
    "odd eta": headers(eta="tomorrow"),
    "later": headers(eta="2099-01-01T00:00:00"),
    "odd expires": headers(expires={}),
    "words expires": headers(expires="rubbish"),
    "odd retries": headers(retries="x"),
    "odd compression": headers(compression="zlib"),
    "odd stamps": headers(stamps=[1], stamped_headers="x"),
    "no properties": envelope(properties=...),
    "list properties": envelope(properties=[]),
    "no delivery tag": properties(delivery_tag=...),
    "object delivery tag": properties(delivery_tag={}),
    "no delivery info": properties(delivery_info=...),
    "odd delivery info": properties(delivery_info="x"),
    "wrong args": envelope(body=json.dumps([[], {}, {}])),
    "odd args": envelope(body=json.dumps([[{"a": []}, 7], {"x": 1}, {}])),
    "odd tick": headers(task="kcm.nodelifecycle.monitorNodeStatus"),
}
CONTROL: dict[str, Any] = {
    "an empty object": {},
    "a list": [],
    "null": None,
    "rubbish": b"rubbish",
    "no body": {"headers": {}, "properties": {}},
    "unknown method": {"method": "rubbish"},
    "no method": {"arguments": {}},
    "odd method": {"method": [], "arguments": {}},
    "odd arguments": {"method": "ping", "arguments": [1]},
    "more arguments": {"method": "ping", "arguments": {"self": 1}, "x": 1},
    "odd destination": {"method": "ping", "destination": 7},
    "odd reply": {"method": "ping", "arguments": {}, "reply_to": 7},
    "odd pattern": {"method": "ping", "pattern": "[", "matcher": "pcre"},
}


def encode(message: Any) -> bytes:
    return message if isinstance(message, bytes) else json.dumps(message).encode()


@pytest.fixture(scope="module")
def folder(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """Gives the folder of the worker; its log is the file `log`."""
    return tmp_path_factory.mktemp("broker")


@pytest.fixture(scope="module")
def worker(redis_server: EmbeddedServer, folder: Path) -> Iterator[psutil.Popen]:
    environment = {
        **os.environ,
        "KCM_REDIS_URL": redis_server.url,
        "KCM_STATE_DIR": str(folder),
        "KCM_SECURE_PORT": "0",
        "PYTHONPATH": str(ROOT),
    }
    io = RedisIO(Settings(redis_url=redis_server.url))
    io.execute("FLUSHALL")
    io.attach()
    io.close()
    command = [sys.executable, "-W", "ignore", "-m", "celery", "-A", "workers", "worker", "-c", "1",
               "-n", "broker@test", "-E", "--without-mingle", "--without-gossip"]  # fmt: skip
    with (folder / "log").open("wb") as log:
        process = psutil.Popen(
            command, cwd=ROOT, env=environment, stdin=subprocess.DEVNULL, stdout=log, stderr=log,
            start_new_session=True,
        )  # fmt: skip

    control = create_app(Settings(redis_url=redis_server.url)).control
    until(lambda: control.ping(["broker@test"], timeout=1, limit=1), "the worker")
    yield process
    process.terminate()
    process.wait(20)


@pytest.fixture
def own(settings: Settings) -> Iterator[RedisIO]:
    io = RedisIO(settings)
    io.attach()
    yield io
    io.close()


def assert_syncs(io: RedisIO, name: str) -> None:
    """A new ReplicaSet gets its pods."""
    store = Store(io)
    owner = store.create(replica_set(name, replicas=2))
    until(lambda: len(store.by_index(f"owner:{owner.uid}", PODS)) == 2, f"the pods of {name}")


def count_messages(io: RedisIO) -> int:
    prefix = io.keys.broker_prefix()
    unacked = io.execute("HLEN", f"{prefix}unacked")
    return int(unacked) + sum(int(io.execute("LLEN", prefix + name)) for name in QUEUES)


def test_no_message_ends_the_worker(worker: psutil.Popen, own: RedisIO, folder: Path) -> None:
    assert_syncs(own, "before")
    pool = {child.pid for child in worker.children(recursive=True)}
    for message in BAD.values():
        for queue in QUEUES:
            own.execute("LPUSH", own.keys.broker_prefix() + queue, encode(message))
    until(lambda: count_messages(own) == 0, "the queues to be empty")
    assert_syncs(own, "after")
    assert worker.is_running()
    assert worker.status() != psutil.STATUS_ZOMBIE
    assert pool <= {child.pid for child in worker.children(recursive=True)}
    counts = own.execute("HGETALL", own.keys.broker_stats())
    # The last three are tasks' own matter: they fail as tasks do.
    assert sum(map(int, counts.values())) >= 2 * (len(BAD) - 4)
    assert {b"not JSON", b"wrong shape", b"too large", b"unknown task"} <= counts.keys()
    log = (folder / "log").read_text()
    assert "A message of the broker was dropped" in log
    assert "Unrecoverable error" not in log


@pytest.mark.parametrize("before", [{}, {HANDED_BACK: "x"}, {HANDED_BACK: -1}, {HANDED_BACK: 1e9}])
def test_a_message_for_a_task_of_another_version_is_handed_back_until_it_is_dropped(
    settings: Settings, own: RedisIO, before: dict[str, Any]
) -> None:
    own.execute("DEL", own.keys.broker_stats())
    queue = own.keys.broker_prefix() + "version-test"
    options = transport_options(settings, ["kcm.replicaset.sync"])
    item = encode(headers(task="kcm.later.sync", **before))
    returns = 0
    with Connection(broker_url(settings), transport_options=options) as connection:
        channel = connection.channel()
        while item:
            channel._deliver_checked(item, "version-test")
            item = own.execute("RPOP", queue)
            if item:
                returns += 1
                assert json.loads(item) == headers(task="kcm.later.sync", **{HANDED_BACK: returns})
    assert returns == (0 if before else MOST_RETURNS)
    assert own.execute("HGET", own.keys.broker_stats(), "unknown task") == b"1"


def control_message(body: Any) -> bytes:
    text = base64.b64encode(encode(body)).decode()
    properties = {
        "delivery_tag": "x",
        "delivery_info": {"exchange": "celery.pidbox", "routing_key": ""},
        "body_encoding": "base64",
    }
    whole = envelope(body=text, properties=properties, headers={"clock": 1})
    return encode(whole)


def test_the_remote_control_takes_rubbish(worker: psutil.Popen, own: RedisIO) -> None:
    channel = "/0.celery.pidbox"
    subscribed = own.execute("PUBSUB", "CHANNELS", "*pidbox*")
    channel = subscribed[0].decode() if subscribed else channel
    for body in CONTROL.values():
        own.execute("PUBLISH", channel, encode(body))
        own.execute("PUBLISH", channel, control_message(body))
    assert_syncs(own, "controlled")
    assert worker.is_running()
    assert create_app(own.settings).control.ping(["broker@test"], timeout=20, limit=1)


@pytest.mark.parametrize(
    "command",
    [
        ("pool_shrink", {"n": 5}),
        ("pool_grow", {"n": 5}),
        ("pool_restart", {}),
        ("autoscale", {"max": 0, "min": 0}),
        ("shutdown", {}),
        ("cancel_consumer", {"queue": "workloads"}),
        ("add_consumer", {"queue": "other"}),
        ("rate_limit", {"task_name": "kcm.replicaset.sync", "rate_limit": "1/h"}),
        ("time_limit", {"task_name": "kcm.replicaset.sync", "hard": 0.001}),
        ("revoke", {"task_id": "x", "terminate": True}),
        ("terminate", {"signal": "KILL", "task_id": "x"}),
        ("disable_events", {}),
        ("election", {"id": 1, "topic": "x"}),
        ("memdump", {}),
    ],
    ids=lambda command: command[0],
)
def test_remote_control_commands_are_refused(
    worker: psutil.Popen, own: RedisIO, command: tuple[str, dict[str, Any]]
) -> None:
    name, arguments = command
    assert name not in ANSWERED
    app = create_app(own.settings)
    replies = app.control.broadcast(
        name, arguments=arguments, destination=["broker@test"], reply=True, timeout=20, limit=1
    )
    assert replies == [{"broker@test": {"error": REFUSAL}}]


def test_inspection_commands_are_answered(worker: psutil.Popen, own: RedisIO) -> None:
    inspect = create_app(own.settings).control.inspect(["broker@test"], timeout=20, limit=1)
    assert inspect.stats()["broker@test"]["pool"]["max-concurrency"] == 1
    assert {queue["name"] for queue in inspect.active_queues()["broker@test"]} >= set(QUEUES)
    assert "kcm.replicaset.sync" in inspect.registered()["broker@test"]
