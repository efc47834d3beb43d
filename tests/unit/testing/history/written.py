"""Writes for tests, without a control plane."""

from __future__ import annotations

import json
from datetime import UTC, datetime, timedelta
from typing import Any

from kcm.store.watch import ChangeType
from kcm.store.writes.observing import Author
from kcm.testing.history.journal import Entry
from kcm.testing.history.writes import Write

START = datetime(2026, 1, 1, tzinfo=UTC)
ALICE = Author("user", "alice", agent="kubectl/1.33", verb="patch")


def written(
    number: int,
    event: ChangeType = "MODIFIED",
    *,
    resource: str = "configmaps",
    kind: str = "ConfigMap",
    name: str = "a",
    namespace: str = "n",
    old: dict[str, Any] | None = None,
    author: Author | None = ALICE,
    part: str = "",
    **fields: Any,
) -> Write:
    """Returns a write with a resourceVersion, a second for each after the start. `fields` are those
    of the object after it, `old` those before.
    """
    metadata = {"name": name, "namespace": namespace}
    obj = {"kind": kind, "metadata": metadata, **fields}
    before = None if event == "ADDED" else {"kind": kind, "metadata": metadata, **(old or {})}
    time = START + timedelta(seconds=number)
    raw = json.dumps(obj).encode()
    entry = Entry(number, resource, f"{namespace}/{name}", event, time, raw, author, part)
    return Write(entry, None if before is None else json.dumps(before).encode())
