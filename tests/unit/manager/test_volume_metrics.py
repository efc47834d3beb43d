"""Tests the gauges of attached volumes."""

from __future__ import annotations

from typing import Any

from kcm.manager.volume_metrics import volume_families
from kcm.redisio.keys import Keys

PLUGIN = "kubernetes.io/csi:disks.example.com"


class Stored:
    """A server that holds what the last pass has counted."""

    keys = Keys()

    def __init__(self, *texts: bytes | None) -> None:
        self._texts = texts

    def execute(self, *_: Any) -> Any:
        return self._texts


def values(*texts: bytes | None) -> dict[tuple[str, ...], float]:
    stored: Any = Stored(*texts)
    families = volume_families(stored)
    return {(s.name, *s.labels.values()): s.value for f in families for s in f.samples}


def test_volumes_are_shown_as_the_last_pass_counted_them() -> None:
    totals = f'[["{PLUGIN}", "actual_state_of_world", 2]]'.encode()
    in_use = f'[["n1", "{PLUGIN}", 3]]'.encode()
    assert values(totals, in_use) == {
        ("attachdetach_controller_total_volumes", PLUGIN, "actual_state_of_world"): 2,
        ("storage_count_attachable_volumes_in_use", "n1", PLUGIN): 3,
    }


def test_without_a_pass_there_are_no_volumes() -> None:
    assert values(None, None) == {}
