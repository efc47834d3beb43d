"""The metadata of converted objects."""

from __future__ import annotations

from typing import Any

import pytest

from kcm.apimachinery.meta_v1 import ObjectMeta
from kcm.apiserver.egress.conversion.converted import InvalidMetadata, restore_metadata

OWN: dict[str, Any] = {
    "labels": {"a": "A", "b": "B"}, "annotations": {"a": "1", "b": "2"},
}  # fmt: skip
CHANGED: dict[str, Any] = {
    "labels": {"a": "AA", "b": "B"}, "annotations": {"a": "1", "b": "22"},
}  # fmt: skip


def restore(original: Any, converted: Any) -> Any:
    meta = ObjectMeta.model_validate(original)
    return restore_metadata(meta, converted).model_dump(by_alias=True, exclude_none=True)


# upstream's TestRestoreObjectMeta
@pytest.mark.parametrize(
    ("original", "given", "expected"),
    [
        ({}, {}, {}),
        ({"name": "bar", **OWN}, {"name": "abc", **CHANGED}, {"name": "bar", **CHANGED}),
        ({"name": "bar"}, {"name": "abc", **CHANGED}, {"name": "bar", **CHANGED}),
        (
            {"name": "bar", "labels": None, "annotations": None},
            {"name": "abc", **CHANGED},
            {"name": "bar", **CHANGED},
        ),
        ({"name": "bar", **OWN}, {"name": "abc"}, {"name": "bar"}),
        (
            {"name": "bar", **OWN},
            {"name": "abc", "labels": None, "annotations": None},
            {"name": "bar"},
        ),
        ({"labels": {"a": "not valid"}}, {"labels": {"a": "not valid"}},
         {"labels": {"a": "not valid"}}),
    ],
)  # fmt: skip
def test_labels_and_annotations_are_the_converted_ones(
    original: Any, given: Any, expected: Any
) -> None:
    assert restore(original, {"metadata": given, "spec": {}}) == expected


@pytest.mark.parametrize(
    ("converted", "why"),
    [
        ({"spec": {}}, "missing metadata in converted object"),
        ({"metadata": ["foo"]}, "invalid metadata of type []interface {} in converted object"),
        ({"metadata": {"labels": "x"}}, "invalid metadata.labels of type string in converted"),
        (
            {"metadata": {"labels": {"a": None, "b": "B"}}},
            "metadata.labels[a] must be a string, but is <nil> in converted object",
        ),
        (
            {"metadata": {"annotations": {"a": 1.5}}},
            "metadata.annotations[a] must be a string, but is float64 in converted object",
        ),
        (
            {"metadata": {"labels": {"some/non-qualified/label": "x"}}},
            'metadata.labels: Invalid value: "some/non-qualified/label"',
        ),
        (
            {"metadata": {"annotations": {"some/non-qualified/label": "x"}}},
            'metadata.annotation: Invalid value: "some/non-qualified/label"',
        ),
        ({"metadata": {"labels": {"foo": "\u00fc\u00e4\u00f6"}}}, "metadata.labels: Invalid value"),
        ({"metadata": {"labels": {"foo": "x" * 64}}}, "must be no more than 63"),
        ({"metadata": {"annotations": {"foo": "x" * (256 * 1024 + 1)}}}, "Too long"),
    ],
)
def test_metadata_that_cannot_be_used_says_why(converted: Any, why: str) -> None:
    with pytest.raises(InvalidMetadata) as raised:
        restore({}, converted)
    assert why in raised.value.message
