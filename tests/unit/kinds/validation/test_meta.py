"""Metadata: names, labels, owners, finalizers, what may not change."""

import time
from datetime import timedelta
from typing import Any

import pytest

from kcm.apimachinery.meta_v1 import (
    KubeObject,
    LabelSelector,
    LabelSelectorRequirement,
    OwnerReference,
)
from kcm.kinds.validation import meta, validate_create, validate_update
from kcm.testing import builders

SUBDOMAIN = (
    "a lowercase RFC 1123 subdomain must consist of lower case alphanumeric characters, '-' or "
    "'.', and must start and end with an alphanumeric character (e.g. 'example.com', regex used "
    r"for validation is '[a-z0-9]([-a-z0-9]*[a-z0-9])?(\.[a-z0-9]([-a-z0-9]*[a-z0-9])?)*')"
)


def faults(obj: KubeObject) -> list[str]:
    return [str(fault) for fault in validate_create(obj)]


def faults_of(**metadata: Any) -> list[str]:
    return faults(builders.pod(metadata=metadata))


def validate_changed(obj: KubeObject, **changes: Any) -> list[str]:
    return [str(fault) for fault in validate_update(obj.with_metadata(**changes), obj)]


@pytest.mark.parametrize(
    "obj",
    [
        builders.pod(),
        builders.pod(owner=builders.replica_set(), phase="Running", ready=True, node="n1"),
        builders.replica_set(),
        builders.node(),
        builders.namespace(),
        builders.lease(),
        builders.event(builders.pod()),
        builders.event(builders.node()),
    ],
    ids=lambda obj: obj.kind,
)
def test_what_builders_make_is_valid_and_may_stay_as_it_is(obj: KubeObject) -> None:
    assert faults(obj) == []
    assert validate_changed(obj) == []


def test_a_name_is_required() -> None:
    assert faults_of(name=None) == [
        "metadata.name: Required value: name or generateName is required"
    ]


def test_a_bad_name_is_explained() -> None:
    assert faults_of(name="Web_1") == [f'metadata.name: Invalid value: "Web_1": {SUBDOMAIN}']


def test_a_name_prefix_may_end_in_a_dash_but_must_be_good_otherwise() -> None:
    assert faults_of(name="web-x", generate_name="web-") == []
    assert faults_of(name="web-x", generate_name="Web-") == [
        f'metadata.generateName: Invalid value: "Web-": {SUBDOMAIN}'
    ]


def test_a_namespace_is_required_or_forbidden() -> None:
    assert faults_of(namespace=None) == ["metadata.namespace: Required value"]
    assert "a lowercase RFC 1123 label" in faults_of(namespace="a.b")[0]
    assert faults(builders.node(metadata={"namespace": "x"})) == [
        "metadata.namespace: Forbidden: not allowed on this type"
    ]


def test_labels_have_good_keys_and_values() -> None:
    messages = faults_of(labels={"a b": "c", "d": "e f"})
    assert len(messages) == 2
    assert messages[0].startswith('metadata.labels: Invalid value: "a b": name part must consist')
    assert messages[1].startswith('metadata.labels: Invalid value: "e f": a valid label must be')


def test_annotation_keys_may_be_upper_case_and_values_anything() -> None:
    assert faults_of(annotations={"Example.COM/Key": "any\ntext"}) == []
    assert faults_of(annotations={"a b": ""})[0].startswith("metadata.annotations: Invalid value")


def test_annotations_have_a_total_limit_in_bytes() -> None:
    assert faults_of(annotations={"a": "x" * (256 * 1024 - 1)}) == []
    too_long = ["metadata.annotations: Too long: may not be more than 262144 bytes"]
    assert faults_of(annotations={"a": "x" * (256 * 1024)}) == too_long
    assert faults_of(annotations={"a": "é" * (128 * 1024)}) == too_long


def test_owners_must_be_named_in_full() -> None:
    assert faults_of(owner_references=[OwnerReference()]) == [
        'metadata.ownerReferences.apiVersion: Invalid value: "": version must not be empty',
        'metadata.ownerReferences.kind: Invalid value: "": must not be empty',
        'metadata.ownerReferences.name: Invalid value: "": must not be empty',
        'metadata.ownerReferences.uid: Invalid value: "": must not be empty',
    ]


def test_only_one_owner_may_be_the_controller() -> None:
    references = [
        builders.owner_reference(builders.replica_set(name), controller=True) for name in "ab"
    ]
    assert faults_of(owner_references=references)[0].endswith(
        'Only one reference can have Controller set to true. Found "true" in references for '
        "ReplicaSet/a and ReplicaSet/b"
    )


def test_an_event_may_own_nothing() -> None:
    reference = OwnerReference(api_version="v1", kind="Event", name="e", uid="u")
    assert "disallowed from being an owner" in faults_of(owner_references=[reference])[0]


def test_finalizers_are_standard_or_have_a_prefix() -> None:
    assert faults_of(finalizers=["foregroundDeletion", "example.com/x"]) == []
    assert faults_of(finalizers=["mine"]) == [
        'metadata.finalizers[0]: Invalid value: "mine": name is neither a standard finalizer '
        "name nor is it fully qualified"
    ]
    assert faults_of(finalizers=["a/b/c"])[0].startswith("metadata.finalizers: Invalid value")


def test_dependents_cannot_be_both_orphaned_and_deleted_first() -> None:
    assert faults_of(finalizers=["orphan", "foregroundDeletion"]) == [
        'metadata.finalizers: Invalid value: []string{"orphan", "foregroundDeletion"}: '
        "finalizer orphan and foregroundDeletion cannot be both set"
    ]


def test_a_generation_is_not_negative_and_never_falls() -> None:
    assert faults_of(generation=-1) == [
        "metadata.generation: Invalid value: -1: must be greater than or equal to 0"
    ]
    pod = builders.pod(metadata={"generation": 2})
    assert validate_changed(pod, generation=1) == [
        "metadata.generation: Invalid value: 1: must not be decremented"
    ]
    assert validate_changed(pod, generation=3) == []


@pytest.mark.parametrize(
    ("field", "wire", "value"),
    [
        ("name", "name", "other"),
        ("namespace", "namespace", "other"),
        ("uid", "uid", "other"),
        ("deletion_grace_period_seconds", "deletionGracePeriodSeconds", 3),
    ],
)
def test_identity_and_deletion_marks_may_not_change(
    field: str, wire: str, value: int | str
) -> None:
    messages = validate_changed(builders.pod(), **{field: value})
    shown = f'"{value}"' if isinstance(value, str) else value
    assert f"metadata.{wire}: Invalid value: {shown}: field is immutable" in messages


def test_times_of_creation_and_deletion_may_not_change() -> None:
    later = builders.START + timedelta(seconds=1)
    for field, wire in (
        ("creation_timestamp", "creationTimestamp"),
        ("deletion_timestamp", "deletionTimestamp"),
    ):
        [message] = validate_changed(builders.pod(), **{field: later})
        assert message.startswith(f"metadata.{wire}: Invalid value: ")
        assert message.endswith("field is immutable")


def test_marks_left_out_count_as_unchanged() -> None:
    assert validate_changed(builders.pod(), uid=None, creation_timestamp=None) == []


def test_an_object_that_is_being_deleted_gets_no_new_finalizers() -> None:
    pod = builders.pod(deleting=builders.START, metadata={"finalizers": ["a/b"]})
    assert validate_changed(pod, finalizers=None) == []
    assert validate_changed(pod, finalizers=["a/b", "a/d", "a/c"]) == [
        "metadata.finalizers: Forbidden: no new finalizers can be added if the object is being "
        'deleted, found new finalizers []string{"a/c", "a/d"}'
    ]


def test_changed_labels_are_checked() -> None:
    assert len(validate_changed(builders.pod(), labels={"a b": "c"})) >= 1


@pytest.mark.parametrize(
    ("operator", "values", "fault"),
    [
        ("In", [], "s.matchExpressions[0].values: Required value: must be specified when "),
        ("Exists", ["a"], "s.matchExpressions[0].values: Forbidden: may not be specified when "),
        ("Gt", ["1"], 's.matchExpressions[0].operator: Invalid value: "Gt": not a valid selector'),
        ("In", ["a", "b c"], 's.matchExpressions[0].values[1]: Invalid value: "b c": a valid '),
    ],
)
def test_label_selectors_make_sense(operator: str, values: list[str], fault: str) -> None:
    requirement = LabelSelectorRequirement(key="k", operator=operator, values=values)
    selector = LabelSelector(match_expressions=[requirement])
    [error] = meta.label_selector(selector, "s")
    assert str(error).startswith(fault)


def test_the_first_thousand_faults_are_told_and_no_more_are_looked_for() -> None:
    before = time.process_time()
    messages = faults_of(owner_references=[OwnerReference()] * 100_000)
    assert len(messages) == 1000
    assert time.process_time() - before < 5


def test_many_controllers_are_told_once() -> None:
    owner = OwnerReference(api_version="v1", kind="A", name="b", uid="c", controller=True)
    before = time.process_time()
    (message,) = faults_of(owner_references=[owner] * 20_000)
    assert "Only one reference can have Controller set to true" in message
    assert time.process_time() - before < 5
