"""Namespaces, leases and events, and kinds without rules of their own."""

from typing import Any

import pytest

from kcm.api import scheme
from kcm.api.core_v1 import ObjectReference
from kcm.api.scheduling_v1 import PriorityClass
from kcm.apimachinery.meta_v1 import KubeObject, ObjectMeta
from kcm.kinds.validation import validate_create, validate_status_update, validate_update
from kcm.testing import builders
from tests.unit.kinds.validation.outcomes import texts


def test_a_namespace_is_named_by_a_label() -> None:
    [message] = texts(validate_create(builders.namespace("a.b")))
    assert message.startswith('metadata.name: Invalid value: "a.b": a lowercase RFC 1123 label')


def test_finalizers_of_a_namespace_are_checked() -> None:
    namespace = builders.namespace(finalizers=["kubernetes", "mine"])
    expected = [
        'spec.finalizers: Invalid value: "mine": name is neither a standard finalizer name nor '
        "is it fully qualified"
    ]
    assert texts(validate_create(namespace)) == expected
    assert texts(validate_update(namespace, namespace)) == expected


def test_a_namespace_is_active_until_it_is_being_deleted_and_then_terminating() -> None:
    active, terminating = builders.namespace(), builders.namespace(phase="Terminating")
    assert validate_status_update(active, active) == []
    assert texts(validate_status_update(terminating, active)) == [
        "status.Phase: Invalid value: \"Terminating\": may only be 'Active' if "
        "`deletionTimestamp` is empty"
    ]
    deleted = active.with_metadata(deletion_timestamp=builders.START)
    assert texts(validate_status_update(deleted, deleted)) == [
        "status.Phase: Invalid value: \"Active\": may only be 'Terminating' if "
        "`deletionTimestamp` is not empty"
    ]


@pytest.mark.parametrize(
    ("spec", "expected"),
    [
        ({}, []),
        (
            {"lease_duration_seconds": 0},
            ["spec.leaseDurationSeconds: Invalid value: 0: must be greater than 0"],
        ),
        (
            {"lease_transitions": -1},
            ["spec.leaseTransitions: Invalid value: -1: must be greater than or equal to 0"],
        ),
        (
            {"preferred_holder": "x"},
            [
                "spec.preferredHolder: Forbidden: may only be specified if `strategy` is defined",
            ],
        ),
        ({"strategy": "OldestEmulationVersion", "preferred_holder": "x"}, []),
        ({"strategy": "example.com/mine"}, []),
        (
            {"strategy": "mine"},
            [
                'spec.strategy.strategy: Unsupported value: "mine": supported values: '
                '"OldestEmulationVersion"'
            ],
        ),
    ],
)
def test_a_lease_is_judged_in_upstreams_words(spec: dict[str, Any], expected: list[str]) -> None:
    lease = builders.lease(**spec)
    assert texts(validate_create(lease)) == expected
    assert texts(validate_update(lease, lease)) == expected


def test_an_event_lives_in_the_namespace_of_its_object() -> None:
    event = builders.event(builders.pod(namespace="a"))
    assert validate_create(event) == []
    moved = event.with_metadata(namespace="b")
    assert texts(validate_create(moved)) == [
        'involvedObject.namespace: Invalid value: "a": does not match event.namespace'
    ]
    about_a_node = event.replace(involved_object=ObjectReference(kind="Node", name="n"))
    assert len(validate_create(about_a_node)) == 1


def test_an_event_with_an_event_time_says_who_reports_what() -> None:
    event = builders.event(builders.pod()).replace(
        event_time=builders.START, reporting_component="", reason="x" * 129, message="y" * 1025
    )
    assert texts(validate_create(event)) == [
        "reportingComponent: Required value",
        'reportingComponent: Invalid value: "": name part must be non-empty',
        'reportingComponent: Invalid value: "": name part must consist of alphanumeric '
        "characters, '-', '_' or '.', and must start and end with an alphanumeric character "
        "(e.g. 'MyName',  or 'my.name',  or '123-abc', regex used for validation is "
        "'([A-Za-z0-9][-A-Za-z0-9_.]*)?[A-Za-z0-9]')",
        "reportingInstance: Required value",
        "action: Required value",
        'reason: Invalid value: "": can have at most 128 characters',
        'message: Invalid value: "": can have at most 1024 characters',
    ]


def test_events_may_have_names_that_are_no_subdomains() -> None:
    event = builders.event(builders.pod(), name="Web_1.17a")
    assert validate_create(event) == []
    assert validate_update(event, event) == []


class Widget(KubeObject):
    """A kind without rules of its own."""

    api_version: str = "example.com/v1"
    kind: str = "Widget"


def test_a_kind_without_rules_of_its_own_gets_those_for_metadata() -> None:
    Widget.resource = scheme.kind(Widget, "widgets")  # type: ignore[assignment] # as the scheme does
    widget = Widget(metadata=ObjectMeta(name="W"))
    assert len(validate_create(widget)) == 2
    assert len(validate_update(widget.with_metadata(name="v"), widget)) == 1


RESERVED = (
    "metadata.name: Forbidden: priority class names with 'system-' prefix are reserved for system "
    "use only"
)


# Cases of TestValidatePriorityClass (pkg/apis/scheduling/validation/validation_test.go), and of the
# highest value.
@pytest.mark.parametrize(
    ("name", "value", "expected"),
    [
        ("tier1", 100, []),
        ("tier1", 1_000_000_000, []),
        ("tier1", 1_000_000_001,
         ["value: Forbidden: maximum allowed value of a user defined priority is 1000000000"]),
        ("system-node-critical", 2_000_001_000, []),
        ("system-node-critical", 0, [RESERVED]),
        ("system-something", 2_000_001_000, [RESERVED]),
    ],
)  # fmt: skip
def test_priorities_of_the_system_have_its_names(
    name: str, value: int, expected: list[str]
) -> None:
    priority_class = PriorityClass(
        metadata=ObjectMeta(name=name), value=value, preemption_policy="Never"
    )
    assert texts(validate_create(priority_class)) == expected
