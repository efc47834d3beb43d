"""Validation of Jobs and of changes to them."""

from __future__ import annotations

from typing import Any

import pytest

from kcm.api.batch_v1 import CONTROLLER_UID, JOB_NAME
from kcm.api.core_v1 import ResourceRequirements
from kcm.api.core_v1.affinity import Affinity, NodeAffinity
from kcm.apimachinery.quantity import Quantity
from kcm.kinds.validation import validate_create
from kcm.testing import builders
from tests.samples import BODIES, sample, with_spec
from tests.unit.kinds.validation.outcomes import texts, validate_changed, validate_new_spec

JOBS = "jobs.batch"
POLICY = "spec.podFailurePolicy.rules[0]"
SUCCESS = "spec.successPolicy.rules[0]"
NOT_NEGATIVE = "must be greater than or equal to 0"
IMMUTABLE = "field is immutable"
SUSPENDED = {"conditions": [{"type": "Suspended", "status": "True"}]}
INDEXED = {"completionMode": "Indexed", "completions": 5}


def rules(*rules_of_policy: Any) -> dict[str, Any]:
    return {"podFailurePolicy": {"rules": list(rules_of_policy)}}


def codes(**changes: Any) -> dict[str, Any]:
    on_exit_codes = {"operator": "In", "values": [1]} | changes
    return rules({"action": "Ignore", "onExitCodes": on_exit_codes})


def success(**rule: Any) -> dict[str, Any]:
    return {**INDEXED, "successPolicy": {"rules": [rule]}}


@pytest.mark.parametrize(
    "field",
    ["parallelism", "completions", "activeDeadlineSeconds", "backoffLimit",
     "ttlSecondsAfterFinished"],
)  # fmt: skip
def test_numbers_are_not_negative(field: str) -> None:
    expected = f"spec.{field}: Invalid value: -1: {NOT_NEGATIVE}"
    assert validate_new_spec(JOBS, **{field: -1}) == [expected]


@pytest.mark.parametrize(
    ("spec", "expected"),
    [
        ({**INDEXED, "backoffLimitPerIndex": 1, "maxFailedIndexes": 2}, []),
        ({"completionMode": "Odd"},
         ['spec.completionMode: Unsupported value: "Odd": '
          'supported values: "NonIndexed", "Indexed"']),
        ({"completionMode": "Indexed", "parallelism": 1},
         ["spec.completions: Required value: when completion mode is Indexed"]),
        ({**INDEXED, "parallelism": 100_001},
         ["spec.parallelism: Invalid value: 100001: must be less than or equal to 100000 "
          "when completion mode is Indexed"]),
        ({**INDEXED, "backoffLimitPerIndex": 1, "maxFailedIndexes": 6},
         ["spec.maxFailedIndexes: Invalid value: 6: must be less than or equal to completions"]),
        ({**INDEXED, "maxFailedIndexes": 2},
         ["spec.backoffLimitPerIndex: Required value: when maxFailedIndexes is specified"]),
        ({"backoffLimitPerIndex": 1},
         ["spec.backoffLimitPerIndex: Invalid value: 1: requires indexed completion mode"]),
        ({**INDEXED, "completions": 100_001, "backoffLimitPerIndex": 1},
         ["spec.maxFailedIndexes: Required value: must be specified when completions is above "
          "100000"]),
        ({**INDEXED, "completions": 100_001, "backoffLimitPerIndex": 1,
          "maxFailedIndexes": 10_001, "parallelism": 10_001},
         [f"spec.{field}: Invalid value: 10001: must be less than or equal to 10000 when "
          "completions are above 100000 and used with backoff limit per index"
          for field in ("parallelism", "maxFailedIndexes")]),
        ({"managedBy": "example.com/queue"}, []),
        ({"managedBy": "queue"},
         ['spec.managedBy: Invalid value: "queue": must be a domain-prefixed path '
          '(such as "acme.io/foo")']),
        ({"managedBy": ""}, ["spec.managedBy: Required value"]),
        ({"managedBy": "a/" + "b" * 62},
         ["spec.managedBy: Too long: may not be more than 63 bytes"]),
        ({"podReplacementPolicy": "Never"},
         ['spec.podReplacementPolicy: Unsupported value: "Never": '
          'supported values: "Failed", "TerminatingOrFailed"']),
        ({**codes(), "podReplacementPolicy": "TerminatingOrFailed"},
         ['spec.podReplacementPolicy: Unsupported value: "TerminatingOrFailed": '
          'supported values: "Failed"']),
    ],
)  # fmt: skip
def test_the_spec(spec: dict[str, Any], expected: list[str]) -> None:
    assert validate_new_spec(JOBS, **spec) == expected


@pytest.mark.parametrize(
    ("policy", "expected"),
    [
        (None, ['Required value: valid values: "OnFailure", "Never"']),
        ("Always", ['Required value: valid values: "OnFailure", "Never"']),
        ("Odd", ['Unsupported value: "Odd": supported values: "Always", "OnFailure", "Never"',
                 'Unsupported value: "Odd": supported values: "OnFailure", "Never"']),
        ("OnFailure", []),
    ],
)  # fmt: skip
def test_pods_of_jobs_end(policy: str | None, expected: list[str]) -> None:
    template = BODIES[JOBS]["spec"]["template"]
    spec = {**template["spec"], "restartPolicy": policy}
    path = "spec.template.spec.restartPolicy"
    messages = validate_new_spec(JOBS, template={**template, "spec": spec})
    assert messages == [f"{path}: {text}" for text in expected]


@pytest.mark.parametrize(
    ("spec", "expected"),
    [
        (codes(), []),
        (rules({"action": "Count", "onPodConditions": [{"type": "DisruptionTarget"}]}), []),
        (rules({"action": "", "onExitCodes": {"operator": "In", "values": [1]}}),
         [f"{POLICY}.action: Required value: valid values: "
          '["Count" "FailIndex" "FailJob" "Ignore"]']),
        (rules({"action": "FailIndex", "onExitCodes": {"operator": "In", "values": [1]}}),
         [f'{POLICY}.action: Invalid value: "FailIndex": '
          "requires the backoffLimitPerIndex to be set"]),
        (rules({"action": "Ignore"}),
         [f"{POLICY}: Invalid value: specifying one of OnExitCodes and OnPodConditions is "
          "required"]),
        (rules({"action": "Ignore", "onPodConditions": [{"type": "a"}],
                "onExitCodes": {"operator": "In", "values": [1]}}),
         [f"{POLICY}: Invalid value: specifying both OnExitCodes and OnPodConditions is not "
          "supported"]),
        (codes(values=[]),
         [f"{POLICY}.onExitCodes.values: Invalid value: []: at least one value is required"]),
        (codes(values=[0]),
         [f"{POLICY}.onExitCodes.values[0]: Invalid value: 0: must not be 0 for the In operator"]),
        (codes(values=[2, 1]),
         [f"{POLICY}.onExitCodes.values: Invalid value: [2,1]: must be ordered"]),
        (codes(values=[1, 1]), [f"{POLICY}.onExitCodes.values[1]: Duplicate value: 1"]),
        (codes(containerName="other"),
         [f'{POLICY}.onExitCodes.containerName: Invalid value: "other": must be one of the '
          "container or initContainer names in the pod template"]),
        (codes(operator="Is"),
         [f'{POLICY}.onExitCodes.operator: Unsupported value: "Is": '
          'supported values: "In", "NotIn"']),
        (rules({"action": "Count", "onPodConditions": [{"type": "a", "status": "Maybe"}]}),
         [f'{POLICY}.onPodConditions[0].status: Unsupported value: "Maybe": '
          'supported values: "False", "True", "Unknown"']),
    ],
)  # fmt: skip
def test_the_policy_of_failures(spec: dict[str, Any], expected: list[str]) -> None:
    assert validate_new_spec(JOBS, **spec) == expected


@pytest.mark.parametrize(
    ("spec", "expected"),
    [
        (success(succeededIndexes="0-2", succeededCount=2), []),
        ({"successPolicy": {"rules": []}},
         ['spec.successPolicy: Invalid value: {"rules":[]}: requires indexed completion mode']),
        ({**INDEXED, "successPolicy": {"rules": []}},
         ["spec.successPolicy.rules: Required value: at least one rules must be specified when "
          "the successPolicy is specified"]),
        (success(),
         [f"{SUCCESS}: Required value: at least one of succeededCount or succeededIndexes must "
          "be specified"]),
        (success(succeededIndexes="4,2"),
         [f'{SUCCESS}.succeededIndexes: Invalid value: "4,2": error parsing succeededIndexes: '
          "non-increasing order, previous: 4, current: 2"]),
        (success(succeededCount=6),
         [f"{SUCCESS}.succeededCount: Invalid value: 6: must be less than or equal to 5 "
          "(the number of specified completions)"]),
        (success(succeededIndexes="0,1", succeededCount=3),
         [f"{SUCCESS}.succeededCount: Invalid value: 3: must be less than or equal to 2 "
          "(the number of indexes in the specified succeededIndexes field)"]),
    ],
)  # fmt: skip
def test_the_policy_of_success(spec: dict[str, Any], expected: list[str]) -> None:
    assert validate_new_spec(JOBS, **spec) == expected


# --- the selector


def test_a_generated_selector_is_right() -> None:
    job = builders.job()
    assert validate_create(job) == []
    chosen = {CONTROLLER_UID: job.uid}
    assert job.spec.selector is not None
    assert job.spec.selector.match_labels == chosen
    assert (job.spec.template.metadata.labels or {})[JOB_NAME] == job.name


def test_labels_that_contradict_the_generated_ones_are_refused() -> None:
    template = builders.job().spec.template
    labels = {JOB_NAME: "other"}
    bad = template.replace(metadata=template.metadata.replace(labels=labels))
    (fault,) = texts(validate_create(builders.job(template=bad)))
    assert fault.startswith(f"spec.template.metadata.labels[{JOB_NAME}]: Invalid value")
    assert fault.endswith("must be 'work'")


def test_a_manual_selector_must_match_the_template() -> None:
    selector = {"matchLabels": {"a": "b"}}
    (fault,) = validate_new_spec(JOBS, selector=selector)
    assert fault.endswith("`selector` does not match template `labels`")
    assert validate_new_spec(JOBS, selector=None)[0] == "spec.selector: Required value"


def test_the_name_of_an_indexed_job_makes_host_names() -> None:
    job = builders.job("a" * 62, completion_mode="Indexed", completions=11)
    assert "will not able to create pod with invalid DNS label" in texts(validate_create(job))[0]
    job = builders.job("a" * 60, completion_mode="Indexed", completions=11)
    assert validate_create(job) == []


# --- changes


@pytest.mark.parametrize(
    ("old", "new", "expected"),
    [
        ({"parallelism": 1}, {"parallelism": 5}, []),
        ({"suspend": True}, {"suspend": False}, []),
        ({"backoffLimit": 1}, {"backoffLimit": 0}, []),
        ({"completions": 1}, {"completions": 2}, ["completions: Invalid value: 2"]),
        (INDEXED | {"parallelism": 5}, INDEXED | {"completions": 7, "parallelism": 7}, []),
        (INDEXED | {"parallelism": 5}, INDEXED | {"completions": 7, "parallelism": 5},
         ["completions: Invalid value: 7"]),
        (INDEXED, {"completions": 5}, ["completionMode: Invalid value"]),
        (INDEXED, INDEXED | {"backoffLimitPerIndex": 0},
         ["backoffLimitPerIndex: Invalid value: 0"]),
        ({}, {"managedBy": "a.b/c"}, ['managedBy: Invalid value: "a.b/c"']),
        ({}, codes() | {"podReplacementPolicy": "Failed"}, ["podFailurePolicy: Invalid value"]),
        (INDEXED, success(succeededCount=1), ["successPolicy: Invalid value"]),
    ],
)  # fmt: skip
def test_updates(old: dict[str, Any], new: dict[str, Any], expected: list[str]) -> None:
    base = {"podReplacementPolicy": "Failed"}
    messages = validate_changed(with_spec(JOBS, **base, **old), with_spec(JOBS, **base, **old))
    assert messages == []
    messages = validate_changed(with_spec(JOBS, **base | new), with_spec(JOBS, **base | old))
    assert len(messages) == len(expected)
    for fault, start in zip(messages, expected, strict=True):
        assert fault.startswith(f"spec.{start}")


@pytest.mark.parametrize(
    ("suspend", "started", "ok"),
    [(True, False, True), (True, True, False), (False, False, False)],
)
def test_where_pods_go_may_change_before_there_are_any(
    suspend: bool, started: bool, ok: bool
) -> None:
    old = with_spec(JOBS, suspend=suspend)
    if started:
        old = old.with_status(old.status.replace(start_time=builders.START))
    spec = old.spec.template.spec.replace(
        node_selector={"a": "b"}, affinity=Affinity(node_affinity=NodeAffinity()), tolerations=[]
    )
    template = old.spec.template.replace(spec=spec)
    new = old.with_spec(old.spec.replace(template=template))
    assert (validate_changed(new, old) == []) is ok


def test_what_pods_run_never_changes() -> None:
    old = with_spec(JOBS, suspend=True)
    spec = old.spec.template.spec.replace(priority=7)
    new = old.with_spec(old.spec.replace(template=old.spec.template.replace(spec=spec)))
    (fault,) = validate_changed(new, old)
    assert fault.startswith("spec.template.spec: Invalid value")
    assert fault.endswith(IMMUTABLE)


# After the cases of TestValidateJobUpdate with resources, and TestJobStrategy_ValidateUpdate.
@pytest.mark.parametrize(
    ("status", "suspend", "path"),
    [
        ({}, True, ""),
        ({}, False, "spec.template"),
        ({"startTime": "2024-01-01T00:00:00Z"}, True, "spec.template"),
        ({"startTime": "2024-01-01T00:00:00Z", "active": 1, **SUSPENDED}, True, "spec.template"),
        ({"startTime": "2024-01-01T00:00:00Z", **SUSPENDED}, True, ""),
    ],
)
def test_resources_may_change_while_a_suspended_job_has_no_pods(
    status: dict[str, Any], suspend: bool, path: str
) -> None:
    old = sample(JOBS, status=status)
    old = old.with_spec(old.spec.replace(suspend=suspend))
    (container,) = old.spec.template.spec.containers
    more = container.replace(resources=ResourceRequirements(requests={"cpu": Quantity("1")}))
    template = old.spec.template
    changed = template.replace(spec=template.spec.replace(containers=[more]))
    faults = validate_changed(old.with_spec(old.spec.replace(template=changed)), old)
    assert [fault.partition(":")[0] for fault in faults] == ([path] if path else [])


def test_a_sample_is_as_good_as_its_builder() -> None:
    assert sample(JOBS).spec.backoff_limit == builders.job().spec.backoff_limit == 6
