"""Where defaults of schemas may be, and what they may say."""

from __future__ import annotations

from typing import Any

import pytest

from kcm.apiextensions.schemas import structural
from tests.unit.apiextensions.samples import TEXT, WHOLE, struct

OBJECT = {"x-kubernetes-embedded-resource": True}
LABELS = {"type": "object", "additionalProperties": TEXT}


def faults(**properties: Any) -> list[str]:
    return [str(fault) for fault in structural.check(struct(**properties), "s")]


def test_the_metadata_of_the_object_itself_has_no_defaults() -> None:
    name = TEXT | {"default": "a"}
    assert faults(metadata=struct(name=name) | {"default": {}}) == [
        "s.properties[metadata].default: Forbidden: must not be set in top-level metadata",
        "s.properties[metadata].properties[name].default: Forbidden: must not be set in top-level "
        "metadata",
    ]
    assert faults(kind=TEXT | {"default": "A"}) == [
        "s.properties[kind].default: Forbidden: must not be set in top-level kind"
    ]


@pytest.mark.parametrize(
    ("default", "why"),
    [
        ({"b": "c"}, ""),
        ({"b": "x y"}, 'must result in valid metadata: metadata.labels: Invalid value: "x y"'),
        (
            "b",
            "must result in valid metadata: metadata: Invalid value: ",
        ),
    ],
)
def test_a_default_within_metadata_results_in_valid_metadata(default: Any, why: str) -> None:
    inner = struct(metadata=struct(labels=LABELS | {"default": default})) | OBJECT
    texts = faults(a=inner)
    assert [why in text for text in texts] == ([True] if why else [])


def test_a_default_that_is_an_object_says_what_it_is() -> None:
    inner = struct(b=TEXT) | OBJECT
    assert faults(a=inner | {"default": {"apiVersion": "v1"}}) == [
        "s.properties[a].default.kind: Required value"
    ]


def test_defaults_of_the_fields_below_do_not_complete_a_default() -> None:
    inner = struct(n=WHOLE | {"default": 1}) | {"required": ["n"], "default": {}}
    assert faults(a=inner) == ["s.properties[a].default.n: Required value"]


def test_a_default_keeps_the_rules() -> None:
    rule = {"rule": "self > 1", "message": "too small"}
    assert faults(a=WHOLE | {"default": 1, "x-kubernetes-validations": [rule]}) == [
        "s.properties[a].default: Invalid value: 1: too small"
    ]
