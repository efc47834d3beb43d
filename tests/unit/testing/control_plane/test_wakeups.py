"""Wake-ups, as the queue's script writes them and as strangers may."""

from __future__ import annotations

import json

import pytest

from kcm.testing.control_plane.wakeups import parse_wakeup


def message(task: object, args: object) -> bytes:
    body = json.dumps([args, {}, {}])
    return json.dumps({"headers": {"task": task}, "body": body}).encode()


def test_a_wakeup_names_the_controller_and_the_key() -> None:
    assert parse_wakeup(message("kcm.replicaset.sync", ["default/web"])) == (
        "replicaset",
        "default/web",
    )


@pytest.mark.parametrize(
    "raw",
    [
        b"",
        b"\xff",
        b"[]",
        b"{}",
        b'{"headers": 1, "body": "[]"}',
        b'{"headers": {"task": "kcm.replicaset.sync"}}',
        b'{"headers": {"task": "kcm.replicaset.sync"}, "body": "no json"}',
        message("kcm.replicaset.sync", []),
        message("kcm.replicaset.sync", [7]),
        message("kcm.replicaset.delete", ["default/web"]),
        message("replicaset", ["default/web"]),
        message(7, ["default/web"]),
        message("kcm.replicaset.sync", {"key": "default/web"}),
    ],
)
def test_anything_else_is_no_wakeup(raw: bytes) -> None:
    assert parse_wakeup(raw) == ("", "")
