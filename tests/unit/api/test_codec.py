"""Decoding and encoding of objects, and the errors for invalid input."""

import json
import time
from typing import Any, cast

import pytest
from pydantic_core import to_json

from kcm import errors
from kcm.api import codec
from kcm.api.apps_v1 import ControllerRevision, ReplicaSet
from kcm.api.core_v1 import ConfigMap, Pod
from kcm.api.scheme import BUILT_IN, Kinds, Resource
from kcm.apimachinery import base
from kcm.apimachinery.meta_v1 import ObjectMeta
from kcm.apimachinery.quantity import Quantity
from kcm.testing import builders
from tests.typed_objects import decode_as

PODS = Pod.resource
SETS = ReplicaSet.resource
POD = {"apiVersion": "v1", "kind": "Pod", "metadata": {"name": "a"}}


def refusal(data: object, kind: Resource | Kinds = BUILT_IN, **options: bool) -> errors.ApiError:
    with pytest.raises(errors.ApiError) as caught:
        codec.decode(cast("bytes", data), kind, **options)  # others are refused, too
    return caught.value


def causes(data: dict[str, Any], kind: Resource | Kinds = BUILT_IN) -> list[str]:
    refused = refusal(data, kind)
    assert isinstance(refused, errors.Invalid)
    return [str(cause) for cause in refused.causes]


def test_json_becomes_an_object_of_its_kind() -> None:
    pod = codec.decode(b'{"apiVersion":"v1","kind":"Pod","spec":{"nodeName":"n1"}}', BUILT_IN)
    assert isinstance(pod, Pod)
    assert pod.spec.node_name == "n1"


def test_text_and_dicts_are_read_like_bytes() -> None:
    data = codec.encode(builders.replica_set())
    expected = codec.decode(data, BUILT_IN)
    assert isinstance(expected, ReplicaSet)
    assert (
        codec.decode(data.decode(), BUILT_IN)
        == codec.decode(json.loads(data), BUILT_IN)
        == expected
    )


def test_with_a_known_resource_kind_and_version_may_be_missing() -> None:
    pod = codec.decode(b'{"metadata":{"name":"a"}}', PODS)
    assert (pod.kind, pod.api_version, pod.name) == ("Pod", "v1", "a")
    assert codec.decode(b'{"kind":"","apiVersion":""}', PODS).kind == "Pod"


def test_another_kind_or_version_than_expected_is_refused() -> None:
    assert refusal(POD, SETS).message == (
        "the kind in the data (Pod) does not match the expected kind (ReplicaSet)"
    )
    assert refusal({"kind": "ReplicaSet", "apiVersion": "v1"}, SETS).message == (
        "the API version in the data (v1) does not match the expected API version (apps/v1)"
    )


def test_a_missing_kind_or_version_is_refused_in_upstreams_words() -> None:
    assert refusal(b'{"a":1}').message == "Object 'Kind' is missing in '{\"a\":1}'"
    assert refusal(b'{"kind":"Pod"}').message.startswith("Object 'apiVersion' is missing in")
    assert refusal(b'{"kind":null}').message.startswith("Object 'Kind' is missing in")


def test_an_unknown_kind_is_its_own_error() -> None:
    assert isinstance(refusal({"apiVersion": "v1", "kind": "Poд"}), errors.UnknownKind)


UNKNOWN = {
    "apiVersion": "v1",
    "kind": "Pod",
    "metadata": {"name": "a", "future": {"big": 123456789012345678901234567890, "e": []}},
    "spec": {
        "containers": [{"name": "c", "resources": {}, "later": {"null": None, "list": [None, {}]}}],
        "volumes": [{"name": "v", "emptyDir": {}}, {"name": "w", "hostPath": {"path": "/"}}],
        "affinity": {"nodeAffinity": {"x": 1.5, "y": True, "z": ""}},
        "node_name": "not the wire's spelling of nodeName",
    },
    "status": {"phase": "Running", "newest": 0},
    "topLevel": {"deep": [[[1]]], "-0": -0.5},
}


def test_unknown_fields_survive_a_round_trip_in_value_if_they_are_to_be_kept() -> None:
    obj = codec.decode(UNKNOWN, BUILT_IN, keep_unknown=True)
    assert json.loads(codec.encode(obj)) == UNKNOWN
    assert codec.to_dict(obj) == UNKNOWN
    assert codec.decode(UNKNOWN, BUILT_IN) == base.drop_unknown(obj) != obj


def test_what_an_earlier_version_has_stored_is_read_without_unknown_fields() -> None:
    text = json.dumps(UNKNOWN).encode()
    assert text.startswith(b'{"apiVersion"')
    assert codec.decode_stored(text, Pod.resource) == codec.decode(UNKNOWN, BUILT_IN)
    ours = codec.encode(codec.decode(UNKNOWN, BUILT_IN))
    assert ours.startswith(b'{"kind":"Pod","apiVersion":"v1",')


def test_a_field_in_pythons_spelling_is_an_unknown_field() -> None:
    assert decode_as(Pod, UNKNOWN).spec.node_name is None


def test_explicit_null_means_absent_wherever_a_field_is_known() -> None:
    pod = decode_as(
        Pod,
        b'{"apiVersion":"v1","kind":"Pod","metadata":{"name":"a","creationTimestamp":null,'
        b'"labels":{"x":null}},"spec":{"containers":null},"status":null}',
    )
    assert pod.spec.containers == []
    assert b"null" not in codec.encode(pod)


def test_none_is_never_printed_and_empty_values_are() -> None:
    text = codec.encode(builders.pod(labels={}, security_context={}))
    assert b"null" not in text
    assert b'"labels":{}' in text


def test_quantities_are_read_from_text_and_numbers_and_print_canonically() -> None:
    pod = decode_as(
        Pod,
        b'{"apiVersion":"v1","kind":"Pod","spec":{"containers":[{"name":"c","resources":'
        b'{"limits":{"cpu":0.5,"memory":"1024Mi","pods":3}}}]}}',
    )
    resources = pod.spec.containers[0].resources
    expected = {
        "cpu": Quantity("500m"),
        "memory": Quantity("1Gi"),
        "pods": Quantity(3),
    }
    assert resources is not None
    assert resources.limits == expected
    assert b'"limits":{"cpu":"500m","memory":"1Gi","pods":"3"}' in codec.encode(pod)


@pytest.mark.parametrize(
    ("part", "expected"),
    [
        ({"replicas": "three"}, 'spec.replicas: Invalid value: "three": must be of type integer'),
        ({"replicas": 1.5}, "spec.replicas: Invalid value: 1.5: must be of type integer"),
        ({"replicas": True}, "spec.replicas: Invalid value: true: must be of type integer"),
        (
            {"replicas": 3000000000},
            "spec.replicas: Invalid value: 3000000000: must be less than or equal to 2147483647",
        ),
        ({"selector": []}, 'spec.selector: Invalid value: "[]": must be of type object'),
        (
            {"selector": {"matchLabels": {"a/b": 1}}},
            "spec.selector.matchLabels[a/b]: Invalid value: 1: must be of type string",
        ),
        (
            {"template": {"spec": {"containers": [{}, {"image": 5}]}}},
            "spec.template.spec.containers[1].image: Invalid value: 5: must be of type string",
        ),
        (
            {"template": {"spec": {"hostNetwork": "yes"}}},
            'spec.template.spec.hostNetwork: Invalid value: "yes": must be of type boolean',
        ),
        (
            {"template": {"spec": {"tolerations": {}}}},
            'spec.template.spec.tolerations: Invalid value: "{}": must be of type array',
        ),
        (
            {"template": {"spec": {"overhead": {"cpu": "1x"}}}},
            'spec.template.spec.overhead[cpu]: Invalid value: "1x": quantities must match the '
            "regular expression '^([+-]?[0-9.]+)([eEinumkKMGTP]*[-+]?[0-9]*)$'",
        ),
        (
            {"template": {"metadata": {"creationTimestamp": "now"}}},
            'spec.template.metadata.creationTimestamp: Invalid value: "now": must be a time in '
            "RFC 3339, like 2006-01-02T15:04:05Z",
        ),
    ],
)
def test_a_wrong_type_is_located(part: dict[str, Any], expected: str) -> None:
    body = {"apiVersion": "apps/v1", "kind": "ReplicaSet", "metadata": {"name": "w"}, "spec": part}
    assert causes(body) == [expected]


def test_the_message_names_kind_and_object() -> None:
    refused = refusal({**POD, "spec": {"priority": "x"}})
    assert refused.message == (
        'Pod "a" is invalid: spec.priority: Invalid value: "x": must be of type integer'
    )
    assert refused.code == 422


def test_a_thousand_faults_are_cut_to_twenty() -> None:
    assert len(causes({**POD, "spec": {"containers": list(range(1000))}})) == 20


@pytest.mark.parametrize(
    ("data", "message"),
    [
        (b"", "EOF while parsing"),
        (b"{", "line 1 column 1"),
        (b'{"a":1,}', "trailing comma at line 1 column 8"),
        (b"\x00\xff", "not JSON"),
        (b'{"kind":"\xff"}', "not JSON"),
        (b"[]", "not a JSON object but an array"),
        (b"3", "not a JSON object but a number"),
        (b'"x"', "not a JSON object but a string"),
        (b"null", "not a JSON object but null"),
        (b"true", "not a JSON object but a boolean"),
        (b"[" * 100_000, "not JSON"),
        (b'{"kind":"Pod","apiVersion":"v1","x":NaN}', "NaN is not a JSON value"),
        (b'{"kind":"Pod","apiVersion":"v1","x":-Infinity}', "-Infinity is not a JSON value"),
        ('{"kind":"\ud800"}', "not JSON"),
        ({"kind": "Pod", "apiVersion": "v1", "x": float("inf")}, "not JSON"),
        ({"kind": object()}, "not JSON"),
        (7, "cannot be made from int"),
    ],
)
@pytest.mark.parametrize("kind", [BUILT_IN, PODS], ids=["any", "pods"])
def test_what_is_not_json_is_refused(data: object, message: str, kind: Resource | Kinds) -> None:
    refused = refusal(data, kind)
    is_wrong_text = isinstance(data, bytes) and "not a JSON object" not in message
    assert type(refused) is (errors.NotJson if is_wrong_text else errors.BadRequest)
    assert message in refused.message


def test_the_word_nan_in_a_string_is_no_offence() -> None:
    pod = {**POD, "metadata": {"name": "a", "annotations": {"x": "NaN and Infinity"}}}
    assert codec.decode(pod, BUILT_IN).annotations["x"] == "NaN and Infinity"


def test_a_dict_that_contains_itself_is_refused() -> None:
    loop: dict[str, Any] = {"kind": "Pod"}
    loop["x"] = loop
    assert "not JSON" in refusal(loop).message


def test_strict_input_may_not_name_a_field_twice() -> None:
    data = b'{"apiVersion":"v1","kind":"Pod","spec":{"priority":1,"priority":2}}'
    assert 'duplicate field "priority"' in refusal(data, strict=True).message
    assert decode_as(Pod, data).spec.priority == 2


def test_strict_input_may_not_hold_numbers_beyond_a_float() -> None:
    data = b'{"apiVersion":"v1","kind":"Pod","x":1e999}'
    assert "1e999 is out of range" in refusal(data, strict=True).message


def test_what_cannot_be_printed_is_refused() -> None:
    pod = builders.pod().with_metadata(labels={"a": 1})
    with pytest.raises(errors.BadRequest, match="cannot be encoded"):
        codec.encode(pod)
    with pytest.raises(errors.BadRequest, match="cannot be encoded"):
        codec.encode(builders.pod().with_metadata(name="\ud800"))


def test_objects_decoded_twice_share_nothing_that_can_change() -> None:
    data = codec.encode(builders.pod(labels={"a": "b"}))
    one, other = codec.decode(data, BUILT_IN), codec.decode(data, BUILT_IN)
    assert one == other
    assert one.metadata.labels is not other.metadata.labels


@pytest.mark.parametrize("item", ["1", "null", "{}"])
def test_very_many_values_of_a_wrong_type_are_refused_in_linear_time(item: str) -> None:
    text = '{"metadata":{"name":"a","finalizers":[' + ",".join([item] * 500_000) + "]}}"
    before = time.process_time()
    with pytest.raises(errors.BadRequest, match="500000 values of the object do not fit its kind"):
        codec.decode(text.encode(), ConfigMap.resource)
    assert time.process_time() - before < 5


@pytest.mark.parametrize(
    ("changes", "parts"),
    [
        ({}, {"metadata"}),
        ({}, {"metadata", "spec", "status"}),
        ({"metadata": {"name": "b", "labels": None, "x": [1]}}, {"metadata"}),
        ({"spec": {"containers": [{"name": "c", "image": None, "y": 1e3}]}}, {"spec"}),
        ({"spec": None}, {"spec", "metadata"}),
        ({"status": None}, {"status"}),
        ({"metadata": {"name": "a", "annotations": {"n": "1e999"}}}, {"metadata"}),
    ],
)
def test_parts_are_decoded_as_with_the_whole_object(
    changes: dict[str, Any], parts: set[str]
) -> None:
    body = {
        "apiVersion": "v1", "kind": "Pod", "metadata": {"name": "a", "creationTimestamp": None},
        "spec": {"containers": [{"name": "c"}]}, "status": {"phase": "Running"}, **changes,
    }  # fmt: skip
    resource = Pod.resource
    whole = codec.decode(body, resource)
    decoded = codec.decode_parts(body, parts, resource)
    assert decoded == {name: getattr(whole, name) for name in parts}


@pytest.mark.parametrize(
    "changes",
    [
        {"metadata": {"name": 1}}, {"metadata": [1]}, {"spec": {"containers": "x"}},
        {"spec": {"containers": [{"name": "c", "x": float("inf")}]}},
    ],
)  # fmt: skip
def test_parts_are_refused_as_with_the_whole_object(changes: dict[str, Any]) -> None:
    body = {"apiVersion": "v1", "kind": "Pod", "metadata": {"name": "a"}, **changes}
    resource = Pod.resource
    with pytest.raises(errors.ApiError) as of_parts:
        codec.decode_parts(body, {"metadata", "spec"}, resource)
    with pytest.raises(errors.ApiError) as of_whole:
        codec.decode(to_json(body, inf_nan_mode="constants"), resource)
    assert of_parts.value.message == of_whole.value.message


# What Go 1.26 prints for these values (json.Marshal of a map[string]any).
AS_GO = [
    ({"b": 1, "a": [True, None, "x"]}, b'{"b":1,"a":[true,null,"x"]}'),
    ({"command": "a && b <c >d"}, b'{"command":"a \\u0026\\u0026 b \\u003cc \\u003ed"}'),
    (
        {"lines": "\u2028\u2029\n\t\b\f\x01\x7f"},
        b'{"lines":"\\u2028\\u2029\\n\\t\\b\\f\\u0001\x7f"}',
    ),
    ({"text": 'é€😀"\\'}, '{"text":"é€😀\\"\\\\"}'.encode()),
]


@pytest.mark.parametrize(("data", "text"), AS_GO)
def test_json_for_go_has_the_bytes_that_go_writes(data: dict[str, Any], text: bytes) -> None:
    assert codec.encode_json(data) == text
    revision = ControllerRevision(metadata=ObjectMeta(name="r"), data=data)
    assert b'"data":' + text in codec.encode(revision)
    assert codec.decode(codec.encode(revision), ControllerRevision.resource).data == data
