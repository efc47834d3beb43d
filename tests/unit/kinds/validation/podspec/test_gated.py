"""Pods with scheduling gates: their node selector and node affinity may be narrowed."""

from __future__ import annotations

import pytest

from kcm.api.core_v1 import PodSchedulingGate
from kcm.api.core_v1.affinity import (
    Affinity,
    NodeAffinity,
    NodeSelector,
    NodeSelectorRequirement,
    NodeSelectorTerm,
    PodAntiAffinity,
)
from kcm.kinds import defaults, validation
from kcm.testing import builders

GATES = [PodSchedulingGate(name="a")]
ZONE = NodeSelectorRequirement(key="zone", operator="In", values=["a", "b"])
DISK = NodeSelectorRequirement(key="disk", operator="Exists")
ONLY_ADDITIONS = "only additions are allowed (no mutations or deletions)"
NO_TERMS = "no additions/deletions to non-empty NodeSelectorTerms list are allowed"


def terms(*requirements: list[NodeSelectorRequirement]) -> Affinity:
    required = NodeSelector(
        node_selector_terms=[NodeSelectorTerm(match_expressions=each) for each in requirements]
    )
    return Affinity(
        node_affinity=NodeAffinity(required_during_scheduling_ignored_during_execution=required)
    )


ANTI = Affinity(pod_anti_affinity=PodAntiAffinity())


@pytest.mark.parametrize(
    ("old", "new", "words"),
    [
        (None, terms([ZONE]), ""),
        (terms([ZONE]), terms([ZONE, DISK]), ""),
        (ANTI, ANTI.replace(node_affinity=terms([ZONE]).node_affinity), ""),
        (terms([ZONE]), terms([DISK]), ONLY_ADDITIONS),
        (terms([ZONE, DISK]), terms([ZONE]), ONLY_ADDITIONS),
        (terms([ZONE]), terms([ZONE], [DISK]), NO_TERMS),
        (terms([ZONE]), None, NO_TERMS),
        (None, ANTI, "pod updates may not change fields other than"),
    ],
)
def test_requirements_are_added_to_the_terms_only(
    old: Affinity | None, new: Affinity | None, words: str
) -> None:
    before = defaults.apply(builders.pod(scheduling_gates=GATES, affinity=old))
    faults = [str(fault) for fault in validation.validate_update(before.with_spec(
        before.spec.replace(affinity=new)), before)]  # fmt: skip
    assert [words in fault for fault in faults] == ([True] if words else [])


def test_without_gates_the_affinity_stays() -> None:
    before = defaults.apply(builders.pod())
    after = before.with_spec(before.spec.replace(affinity=terms([ZONE])))
    (fault,) = validation.validate_update(after, before)
    assert "pod updates may not change fields other than" in str(fault)
