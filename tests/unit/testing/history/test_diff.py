"""The difference of two states of an object."""

from __future__ import annotations

from typing import Any

import pytest

from kcm.testing.history.diff import ABSENT, HIDDEN, Change, diff, show

Json = dict[str, Any]


@pytest.mark.parametrize(
    ("old", "new", "changes"),
    [
        pytest.param({"a": 1}, {"a": 1}, [], id="nothing"),
        pytest.param({"a": 1}, {"a": 2}, ["a: 1 → 2"], id="a value"),
        pytest.param({"a": 1}, {"a": True}, ["a: 1 → true"], id="a value of another type"),
        pytest.param({}, {"a": {"b": 1, "c": []}}, ["a.b: absent → 1", "a.c: absent → []"], id="n"),
        pytest.param({"a": {"b": 1}}, {}, ["a.b: 1 → absent"], id="a field that is removed"),
        pytest.param({"a": {}}, {"a": None}, ["a: {} → null"], id="null is not absent"),
        pytest.param({"a": {"x/y.z": 1}}, {"a": {}}, ['a["x/y.z"]: 1 → absent'], id="a label"),
        pytest.param(
            {"a": {"\x1b[2J\n": 1}}, {"a": {}}, ['a["\\u001b[2J\\n"]: 1 → absent'], id="e"
        ),
        pytest.param({"a": "x"}, {"a": "\x7f\u202e"}, ['a: "x" → "\\u007f\\u202e"'], id="control"),
        pytest.param({"l": [1, 2]}, {"l": [1, 3, 4]}, ["l[1]: 2 → 3", "l[2]: absent → 4"], id="l"),
        pytest.param(
            {"c": [{"type": "A", "s": 1}, {"type": "B", "s": 1}]},
            {"c": [{"type": "B", "s": 2}, {"type": "C", "s": 1}]},
            [
                "c[A].s: 1 → absent",
                'c[A].type: "A" → absent',
                "c[B].s: 1 → 2",
                "c[C].s: absent → 1",
                'c[C].type: absent → "C"',
            ],
            id="conditions by type",
        ),
        pytest.param(
            {"c": [{"name": "a"}, {"name": "a"}]},
            {"c": [{"name": "a"}, {"name": "b"}]},
            ['c[1].name: "a" → "b"'],
            id="two items of a name are told apart by their place",
        ),
        pytest.param(
            {"l": list(range(11))},
            {"l": [*range(10), "x", "y"]},
            ['l[10]: 10 → "x"', 'l[11]: absent → "y"'],
            id="places in the order of numbers",
        ),
        pytest.param(
            {"metadata": {"resourceVersion": "1", "managedFields": [], "name": "a"}},
            {"metadata": {"resourceVersion": "2", "name": "a"}},
            [],
            id="resourceVersion and managed fields are left out",
        ),
    ],
)
def test_says_what_changed(old: Json, new: Json, changes: list[str]) -> None:
    assert [str(change) for change in diff(old, new)] == changes


def test_an_object_that_is_not_there_has_no_fields() -> None:
    assert diff(None, {"a": 1}) == (Change("a", ABSENT, 1),)
    assert diff({"a": 1}, None) == (Change("a", 1, ABSENT),)


def test_the_values_of_a_secret_are_hidden_but_not_their_names() -> None:
    annotations = {"kubectl.kubernetes.io/last-applied-configuration": "s3cr3t", "other": "seen"}
    old = {"kind": "Secret", "data": {"a": "s3cr3t", "b": "same"}}
    new = {**old, "data": {"a": "s3cr3t2", "b": "same"}, "stringData": {"c": "s3cr3t3"}}
    new["metadata"] = {"annotations": annotations}
    changes = diff(old, new)
    assert "s3cr3t" not in repr(changes)
    assert changes[0] == Change("data.a", HIDDEN, HIDDEN)
    assert str(changes[-1]) == "stringData.c: absent → (hidden)"
    assert "metadata.annotations.other: absent" in " ".join(map(str, changes))
    assert "s3cr3t" not in repr(diff(None, new)) + repr(diff(new, None))
    assert "s3cr3t" not in repr(diff({"kind": "Secret", "data": "s3cr3t"}, {"kind": "Secret"}))


def test_a_long_value_is_cut() -> None:
    assert show("x" * 500) == '"' + "x" * 118 + "…"
