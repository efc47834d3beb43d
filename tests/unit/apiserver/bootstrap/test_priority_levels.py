"""Which objects of flow control are corrected.

The cases follow pkg/registry/flowcontrol/ensurer (flowschema_test.go, prioritylevelconfiguration_
test.go: TestEnsureFlowSchema, TestSuggestedFlowSchemaEnsureStrategy_ShouldUpdate,
TestPriorityLevelSpecChanged), Kubernetes 1.33.
"""

from __future__ import annotations

from datetime import UTC, datetime, timedelta

import pytest

from kcm.api.flowcontrol_v1 import ExemptPriorityLevelConfiguration
from kcm.api.priority_levels import (
    AUTOUPDATE,
    EXEMPT,
    MANDATORY_LEVELS,
    MANDATORY_SCHEMAS,
    SUGGESTED_SCHEMAS,
)
from kcm.apiserver.bootstrap.priority_levels import correct, mark_dangling

[WANTED] = [schema for schema in SUGGESTED_SCHEMAS if schema.name == "service-accounts"]
CHANGED = WANTED.spec.replace(matching_precedence=8000)


@pytest.mark.parametrize(
    ("annotation", "generation", "changed", "mandatory", "becomes"),
    [
        # the spec is wrong
        (None, 1, True, False, ("true", True)),
        (None, 2, True, False, ("false", False)),
        ("invalid", 1, True, False, ("true", True)),
        ("invalid", 2, True, False, ("false", False)),
        ("true", 2, True, False, ("true", True)),
        ("false", 1, True, False, None),
        # the spec is right
        (None, 1, False, False, ("true", False)),
        (None, 2, False, False, ("false", False)),
        ("true", 2, False, False, None),
        ("false", 2, False, False, None),
        # mandatory ones always follow
        ("false", 2, True, True, ("true", True)),
        ("false", 2, False, True, ("true", False)),
        (None, 2, True, True, ("true", True)),
        ("true", 2, True, True, ("true", True)),
        ("true", 2, False, True, None),
    ],
)
def test_a_spec_and_its_annotation_are_corrected(
    annotation: str | None,
    generation: int,
    changed: bool,
    mandatory: bool,
    becomes: tuple[str, bool] | None,
) -> None:
    annotations = {} if annotation is None else {AUTOUPDATE: annotation}
    current = WANTED.replace(spec=CHANGED if changed else WANTED.spec).with_metadata(
        annotations=annotations, generation=generation
    )
    corrected = correct(current, WANTED, mandatory=mandatory)
    if becomes is None:
        assert corrected is None
        return
    assert corrected is not None
    assert corrected.annotations[AUTOUPDATE] == becomes[0]
    assert (corrected.spec == WANTED.spec) is (becomes[1] or not changed)


def test_the_shares_of_the_exempt_level_are_an_administrators() -> None:
    wanted = MANDATORY_LEVELS[EXEMPT]
    shares = ExemptPriorityLevelConfiguration(nominal_concurrency_shares=7, lendable_percent=1)
    current = wanted.replace(spec=wanted.spec.replace(exempt=shares))
    assert correct(current, wanted, mandatory=True) is None
    emptied = wanted.replace(spec=wanted.spec.replace(exempt=None))
    assert correct(emptied, wanted, mandatory=True) == wanted


def test_other_annotations_stay() -> None:
    wanted = MANDATORY_SCHEMAS[EXEMPT]
    current = wanted.with_metadata(annotations={"a": "b"})
    corrected = correct(current, wanted, mandatory=True)
    assert corrected is not None
    assert corrected.annotations == {"a": "b", AUTOUPDATE: "true"}


def test_a_schema_says_whether_its_level_is_missing_and_since_when() -> None:
    now = datetime(2026, 1, 1, tzinfo=UTC)
    there = mark_dangling(WANTED, {"workload-low"}, now)
    [condition] = there.status.conditions or []
    assert (condition.type, condition.status, condition.reason) == ("Dangling", "False", "Found")
    assert mark_dangling(there, {"workload-low"}, now + timedelta(1)) is there
    gone = mark_dangling(there, set(), now + timedelta(1))
    [condition] = gone.status.conditions or []
    assert (condition.status, condition.reason) == ("True", "NotFound")
    assert condition.last_transition_time == now + timedelta(1)
    assert condition.message == (
        "This FlowSchema references the PriorityLevelConfiguration object named "
        '"workload-low" but there is no such object'
    )
