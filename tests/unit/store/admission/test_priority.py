"""Tests that updates keep the priority of a pod; after TestPodAdmission of upstream's
plugin/pkg/admission/priority/admission_test.go.
"""

from __future__ import annotations

from typing import cast

import pytest

from kcm.store.admission.priority import Priority
from kcm.store.reader import StoreReader
from kcm.testing.clock import FakeClock
from tests.new_objects import pod
from tests.unit.store.admission.passing import update

Given = tuple[int | None, str | None]  # priority and preemption policy


@pytest.mark.parametrize(
    ("new", "old", "wanted"),
    [
        ((None, None), (7, "Never"), (7, "Never")),
        ((None, "Never"), (7, "PreemptLowerPriority"), (7, "Never")),  # validation refuses it
        ((8, None), (7, "Never"), (8, "Never")),
        ((None, None), (None, None), (None, None)),
    ],
)
def test_an_update_keeps_what_it_leaves_out(new: Given, old: Given, wanted: Given) -> None:
    plugin = Priority(cast("StoreReader", None), FakeClock())  # an update reads no classes
    kept = update(
        plugin,
        pod("a", priority=new[0], preemption_policy=new[1]),
        pod("a", priority=old[0], preemption_policy=old[1]),
    )
    assert (kept.spec.priority, kept.spec.preemption_policy) == wanted
