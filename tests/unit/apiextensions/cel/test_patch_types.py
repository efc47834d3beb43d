"""Initializers of `Object` and `JSONPatch`.

The cases follow TestApplyConfiguration and TestJSONPatch in
staging/src/k8s.io/apiserver/pkg/admission/plugin/policy/mutating/patch, TestTypeResolver in
staging/src/k8s.io/apiserver/pkg/cel/mutation, and dynamic/objects_test.go there, Kubernetes 1.36.
"""

from __future__ import annotations

from typing import Any

import pytest

from kcm.apiextensions.cel.patch_types import (
    WrongPatchTypeError,
    read_object,
    read_patch,
    rewrite,
)
from kcm.apiextensions.cel.policies import PolicyEvaluation, PolicyInput
from kcm.apiextensions.cel.policy_programs import Scope

OBJECT = {
    "metadata": {"labels": {"env": "test"}},
    "spec": {"replicas": 3, "containers": [{"name": "a"}, {"name": "b"}]},
}
SCOPE = Scope(authorizer=True, patches=True)


def evaluate(text: str) -> Any:
    given = {"object": OBJECT, "oldObject": None, "request": {}, "namespaceObject": None}
    result = PolicyEvaluation(PolicyInput(given | {"authorizer": None}), SCOPE, {}).evaluate(text)
    assert not result.error
    return result.value


@pytest.mark.parametrize(
    ("text", "value"),
    [
        ("Object{}", {}),
        ("Object{spec: Object.spec{}}", {"spec": {}}),
        ("Object { spec : Object . spec { replicas : 5 } }", {"spec": {"replicas": 5}}),
        ("Object{spec: Object.spec{replicas: object.spec.replicas + 1}}",
         {"spec": {"replicas": 4}}),
        ('Object{metadata: Object.metadata{labels: {"a/b": "{,}", "c": string(1)}}}',
         {"metadata": {"labels": {"a/b": "{,}", "c": "1"}}}),
        ("object.spec.replicas > 5 ? Object{spec: Object.spec{replicas: 5}} : Object{}", {}),
        ("Object{spec: Object.spec{?a: optional.none(), ?b: optional.of(1)}}", {"spec": {"b": 1}}),
        ("Object{spec: Object.spec{containers: object.spec.containers.map(c, "
         'Object.spec.containers{name: c.name, image: "x"})}}',
         {"spec": {"containers": [{"name": "a", "image": "x"}, {"name": "b", "image": "x"}]}}),
        ("Object{ // a } comment {\n spec: Object.spec{ /* no comment */ replicas: 1}}", None),
        ("Object{// { only\n}", {}),
        ("Object{spec: Object.spec{`from`: 1}}", {"spec": {"from": 1}}),
        ("Object{a: [1, 2], b: {'c': [Object.b{d: 1}]}}", {"a": [1, 2], "b": {"c": [{"d": 1}]}}),
        ('Object{a: timestamp("2024-01-01T00:00:00Z"), b: duration("90s"), c: b"x"}',
         {"a": "2024-01-01T00:00:00Z", "b": "90s", "c": "eA=="}),
    ],
)  # fmt: skip
def test_an_object_is_what_its_initializers_say(text: str, value: dict[str, Any] | None) -> None:
    if value is None:  # CEL has no such comments
        with pytest.raises(AssertionError):
            evaluate(text)
    else:
        assert read_object(evaluate(text)) == value


@pytest.mark.parametrize(
    ("text", "fault"),
    [
        ("5", "must evaluate to Object but got int"),
        ("{'spec': 1}", "must evaluate to Object but got map"),
        ("Object.spec{}", "must evaluate to Object but got Object.spec"),
        ("JSONPatch{}", "must evaluate to Object but got JSONPatch"),
        ("Object{spec: Object.invalid{replicas: 1}}",
         'type mismatch: unexpected type name "Object.invalid", expected "Object.spec", which '
         "matches field name path from root Object type"),
        ("Object{spec: Object.spec{template: [Object.spec.wrong{}]}}",
         'type mismatch: unexpected type name "Object.spec.wrong", expected '
         '"Object.spec.template", which matches field name path from root Object type'),
        ("Object{spec: {1: 'x'}}", "map key 1 is not a string"),
        ("Object{a: 1.0 / 0.0}", "a value of type float cannot be written as JSON"),
    ],
)  # fmt: skip
def test_other_values_are_no_object(text: str, fault: str) -> None:
    with pytest.raises(WrongPatchTypeError) as raised:
        read_object(evaluate(text))
    assert str(raised.value) == fault


@pytest.mark.parametrize(
    ("text", "patch"),
    [
        ("[]", []),
        ('[JSONPatch{op: "replace", path: "/spec/replicas", value: object.spec.replicas + 7}]',
         [{"op": "replace", "path": "/spec/replicas", "value": 10}]),
        ('[JSONPatch{op: "copy", from: "/a", path: "/b"}]',
         [{"op": "copy", "from": "/a", "path": "/b"}]),
        ('[JSONPatch{op: "add", path: "/metadata/labels/" + jsonpatch.escapeKey("k8s.io/my~label"),'
         ' value: "x"}]',
         [{"op": "add", "path": "/metadata/labels/k8s.io~1my~0label", "value": "x"}]),
        ('has(object.spec.nothing) ? [JSONPatch{op: "remove", path: "/spec"}] : []', []),
        ('[JSONPatch{op: "add", path: "/spec/a", value: Object.spec.a{b: [1, {"c": "d"}]}}]',
         [{"op": "add", "path": "/spec/a", "value": {"b": [1, {"c": "d"}]}}]),
        ('[JSONPatch{op: "test", path: "/a", value: null}]',
         [{"op": "test", "path": "/a", "value": None}]),
    ],
)  # fmt: skip
def test_a_patch_is_a_list_of_operations(text: str, patch: list[dict[str, Any]]) -> None:
    assert read_patch(evaluate(text)) == patch


@pytest.mark.parametrize(
    ("text", "fault"),
    [
        ("Object{}", "must evaluate to list(JSONPatch) but got Object"),
        ("[1]", "must evaluate to list(JSONPatch) but got list(int)"),
        ("[{'op': 'add'}]", "must evaluate to list(JSONPatch) but got list(map)"),
        ("[JSONPatch{op: 1, path: '/a'}]", "the field 'op' of a JSONPatch must be a string"),
        ("[JSONPatch{op: 'add', where: '/a'}]", "unexpected JSONPatchType field: where"),
        ("[JSONPatch{op: 'add', path: '/a', value: Object.a{b: Object.c{}}}]",
         'type mismatch: unexpected type name "Object.c", expected "Object.a.b", which matches '
         "field name path from root Object type"),
    ],
)  # fmt: skip
def test_other_values_are_no_patch(text: str, fault: str) -> None:
    with pytest.raises(WrongPatchTypeError) as raised:
        read_patch(evaluate(text))
    assert str(raised.value) == fault


@pytest.mark.parametrize(
    "text",
    [
        "object.Object.spec.x",
        "'Object{a: 1}' + \"JSONPatch{\" // Object{a: 1}",
        "r'\\' + '''Object{a: 1}''' + r\"\"\"Object{\"\"\"",
        "MyObject{a: 1}",
        "[1, 2].map(a, {'b': a, 'Object': a})",
        ")]}",
    ],
)
def test_what_is_no_initializer_stays(text: str) -> None:
    assert rewrite(text) == text


def test_the_time_grows_with_the_length() -> None:
    deep = "Object{a: " * 20_000
    assert rewrite(deep).count("dyn") == 20_000
    assert rewrite("Object" + " . a" * 50_000 + "{}").startswith("{")
    assert len(rewrite("Object . " * 3_000)) == 27_000
    # Each of these would take years if a part could be read in more than one way.
    assert rewrite("Object{" + " " * 10_000 + "a: 1}").endswith("1}")
    assert rewrite("Object{" + "//" * 10_000 + "\na: 1}").endswith("1}")
    assert rewrite('\\"""\n' * 20_000).count("\n") == 20_000
