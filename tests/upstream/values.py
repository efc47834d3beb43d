"""Cases of values: strategic merge patches, quantities and label selectors."""

from __future__ import annotations

import json
from typing import Annotated, Any

from kcm import errors
from kcm.apimachinery.base import MergeKey, MergeSet, Model
from tests.upstream import adapter, cases
from tests.upstream.accepted import Differences

_BIG = 2**63 - 1


class RetainKeysMergeItem(Model):
    """A type of upstream's tests."""

    name: str | None = None
    value: str | None = None
    other: str | None = None
    simple_map: dict[str, str] | None = None
    merging_int_list: Annotated[list[int] | None, MergeSet()] = None
    merging_list: Annotated[list[MergeItem] | None, MergeKey("name")] = None
    non_merging_list: list[MergeItem] | None = None


class MergeItem(Model):
    """A type of upstream's tests."""

    name: str | None = None
    value: str | None = None
    other: str | None = None
    merging_list: Annotated[list[MergeItem] | None, MergeKey("name")] = None
    non_merging_list: list[MergeItem] | None = None
    merging_int_list: Annotated[list[int] | None, MergeSet()] = None
    non_merging_int_list: list[int] | None = None
    merge_item_ptr: Annotated[list[MergeItem] | None, MergeKey("name")] = None
    simple_map: dict[str, str] | None = None
    replacing_item: Any = None
    retain_keys_map: RetainKeysMergeItem | None = None
    retain_keys_merging_list: Annotated[
        list[MergeItem] | None, MergeKey("name", retain_keys=True)
    ] = None


class PrecisionItem(Model):
    """A type of upstream's tests."""

    name: str | None = None
    int32: int | None = None
    int64: int | None = None
    float32: float | None = None
    float64: float | None = None


MergeItem.model_rebuild()
RetainKeysMergeItem.model_rebuild()

_LABELS = [
    {},
    {"x": "a"},
    {"x": "b", "y": "c"},
    {"x": "1"},
    {"x": "10", "z": ""},
    {"foo": "bar", "baz": "blah"},
    {"env": "production"},
]  # on which the cases have tried each selector


def compare_strategic_merge() -> Differences:
    """Returns where the result of a strategic merge patch differs."""
    differing: dict[int, str] = {}
    for number, case in cases.read("strategic"):
        texts = case["original"] + case["patch"]
        precise = "int32" in case["schema"] or '"int32"' in texts
        original, patch = _load(case["original"]), _load(case["patch"])
        if not isinstance(original, dict) or not isinstance(patch, dict):
            differing[number] = "not expressible: not a JSON object"
            continue
        if '"replacingItem"' in texts or '"jsonItem"' in texts:
            differing[number] = "not expressible: a strategy that no built-in field has"
            continue
        want = None if "err" in case else json.loads(case["result"])
        try:
            got = adapter.merge(original, patch, PrecisionItem if precise else MergeItem)
        except errors.ApiError:
            got = None
        if want != got:
            differing[number] = f"{texts[:300]}: wanted {json.dumps(want)}, got {json.dumps(got)}"
    return {"strategic merge": differing}


def compare_quantities() -> Differences:
    """Returns where the value or the text of a quantity differs."""
    differing: dict[int, str] = {}
    for number, case in cases.read("quantities"):
        want = None if "err" in case else {key: case[key] for key in ("s", "v", "m", "sign", "up")}
        got = adapter.parse_quantity(case["in"])
        if want is not None and got is not None:
            got["v"], got["m"] = (max(min(got[key], _BIG), -_BIG - 1) for key in ("v", "m"))
            if abs(want["v"]) > _BIG // 1000:
                got["m"] = want["m"]  # Go's MilliValue wraps around beyond int64
        if want != got:
            differing[number] = f"{case['in']!r}: wanted {want}, got {got}"
    return {"quantities": differing}


def compare_selectors() -> Differences:
    """Returns where a label selector is parsed or matches otherwise."""
    differing: dict[int, str] = {}
    for number, case in cases.read("selectors"):
        want = None if "err" in case else {key: case[key] for key in ("s", "match")}
        got = adapter.parse_selector(case["in"], _LABELS)
        if want != got:
            differing[number] = f"{case['in']!r}: wanted {want}, got {got}"
    return {"selectors": differing}


def _load(text: str) -> Any:
    try:
        return json.loads(text) if text else {}
    except ValueError:
        return None
