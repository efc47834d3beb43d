from __future__ import annotations

import json
from typing import Any

import pytest

from kcm import errors
from kcm.api import codec
from kcm.api.scheme import BUILT_IN
from kcm.apiserver.bodies.fieldvalidation import check, duplicates, mode_of, unknown


def body(**spec: Any) -> bytes:
    containers = [{"name": "c", "odd": 1}]
    value = {"apiVersion": "v1", "kind": "Pod", "spec": {"containers": containers, **spec}}
    return json.dumps(value).encode()


def test_unknown_fields_are_found_at_any_depth() -> None:
    text = body(volumes=[{"name": "v", "emptyDir": {}}, {"name": "w", "emptyDri": {}}])
    paths = list(unknown(codec.decode(text, BUILT_IN)))
    assert paths == ["spec.volumes[1].emptyDri", "spec.containers[0].odd"]


def test_the_mode_decides_between_silence_a_warning_and_a_refusal() -> None:
    obj = codec.decode(body(), BUILT_IN)
    assert check(obj, body(), "Ignore") == []
    assert check(obj, body(), "Warn") == ['unknown field "spec.containers[0].odd"']
    with pytest.raises(errors.BadRequest, match="strict decoding error: unknown field"):
        check(obj, body(), "Strict")


def test_what_the_object_has_already_is_not_told_again() -> None:
    assert check(codec.decode(body(), BUILT_IN), b"{}", "Strict", {"spec.containers[0].odd"}) == []


def test_duplicate_fields_are_told() -> None:
    text = b'{"apiVersion":"v1","kind":"Pod","metadata":{"name":"a","name":"b"}}'
    assert check(codec.decode(text, BUILT_IN), text, "Warn") == ['duplicate field "name"']


def test_modes_are_named_as_upstreams() -> None:
    assert mode_of("") == "Warn"
    with pytest.raises(errors.BadRequest, match='Unsupported value: "strict"'):
        mode_of("strict")


@pytest.mark.parametrize("space", ["", " "])
def test_a_duplicate_is_found_in_compact_json_and_in_other_json(space: str) -> None:
    once = f'{{"data":{space}{{"a":{space}"x","b":{space}"y"}}}}\n'
    twice = once.replace('"y"', f'"y","a":{space}"x"')
    assert duplicates(once.encode()) == []
    assert duplicates(twice.encode()) == ['duplicate field "a"']
