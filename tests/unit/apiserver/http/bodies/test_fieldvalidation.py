from __future__ import annotations

import json
from typing import Any

import pytest

from kcm import errors
from kcm.api import codec
from kcm.api.core_v1 import Pod
from kcm.apimachinery.base import drop_unknown
from kcm.apiserver.http.bodies.fieldvalidation import (
    check,
    describe_repeated,
    duplicates,
    mode_of,
    unknown_in,
)


def body(**spec: Any) -> bytes:
    containers = [{"name": "c", "odd": 1}]
    value = {"apiVersion": "v1", "kind": "Pod", "spec": {"containers": containers, **spec}}
    return json.dumps(value).encode()


def faults(text: bytes, mode: str = "Warn") -> list[str]:
    obj = codec.decode(text, Pod.resource, keep_unknown=True)
    return check(obj, drop_unknown(obj), text, mode)


def test_unknown_fields_are_found_at_any_depth() -> None:
    text = body(volumes=[{"name": "v", "emptyDir": {}}, {"name": "w", "emptyDri": {"x": 1}}])
    assert faults(text) == [
        'unknown field "spec.containers[0].odd"',
        'unknown field "spec.volumes[1].emptyDri"',
    ]


def test_unknown_fields_of_what_bodies_made_have_their_paths() -> None:
    obj = codec.decode(body(), Pod.resource, keep_unknown=True)
    assert unknown_in(drop_unknown(obj), obj) == ['unknown field "spec.containers[0].odd"']
    assert unknown_in(obj, obj) == []


def test_the_mode_decides_between_silence_a_warning_and_a_refusal() -> None:
    assert faults(body(), "Ignore") == []
    assert faults(body()) == ['unknown field "spec.containers[0].odd"']
    with pytest.raises(errors.BadRequest) as refused:
        faults(body(), "Strict")
    assert refused.value.message == (
        'Pod in version "v1" cannot be handled as a Pod: strict decoding error: '
        'unknown field "spec.containers[0].odd"'
    )


def test_faults_come_in_the_order_of_the_text_with_their_paths_and_once() -> None:
    """After upstream's field_validation.go of test/e2e/apimachinery."""
    text = (
        b'{"metadata":{"labels":{"a":"x","a":"y"}},"spec":{"unknownField":{"b":1,"b":2},'
        b'"hostname":"a","hostname":"b","hostname":"c","containers":[{"name":"n","odd":1,"odd":2,'
        b'"args":[],"args":[]}]}}'
    )
    assert faults(text) == [
        'duplicate field "metadata.labels.a"',
        'unknown field "spec.unknownField"',
        'duplicate field "spec.hostname"',
        'unknown field "spec.containers[0].odd"',
        'duplicate field "spec.containers[0].args"',
    ]


def test_yaml_that_repeats_itself_is_told_in_its_parsers_words() -> None:
    said = ['line 9: key "foo" already set in map', 'line 10: key "x" already set in map']
    assert describe_repeated(said) == [f"yaml: unmarshal errors:\n  {said[0]}\n  {said[1]}"]
    assert describe_repeated([]) == []


def test_modes_are_named_as_upstreams() -> None:
    assert mode_of("") == "Warn"
    with pytest.raises(errors.BadRequest, match='Unsupported value: "strict"'):
        mode_of("strict")


@pytest.mark.parametrize("space", ["", " "])
def test_a_duplicate_is_found_in_compact_json_and_in_other_json(space: str) -> None:
    once = f'{{"data":{space}{{"a":{space}"x","b":{space}"y"}}}}\n'
    twice = once.replace('"y"', f'"y","a":{space}"x"')
    assert duplicates(once.encode()) == []
    assert duplicates(twice.encode()) == ['duplicate field "data.a"']
