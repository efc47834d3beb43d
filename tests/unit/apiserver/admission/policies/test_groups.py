"""Policies that are evaluated together decide as each of them does by itself."""

from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st

from kcm.apiserver.admission.policies import index
from kcm.apiserver.admission.policies.index import Validating
from kcm.apiserver.http_errors import PolicyDenied
from tests.unit.apiserver.admission.policies.test_admission import (
    RESOURCE,
    WRITTEN,
    binding,
    make_admission,
    policy,
    run,
    validations,
)

EXPRESSIONS = [
    "object.data.a == 'x'",
    "object.data.a == 'y'",
    "size(object.data) < 3 // && false",
    "object.data.missing == 'x'",  # fails
    "has(object.data.a) || true",
    "true) || (true",  # compiles with the parentheses of others only
    "'x'",
    "object.data.a",
    "object.metadata.name in ['new', 'old'] ? true : false",
    "object.data.all(key, key != 'b')",
    "variables.none == 1",
]


def decide(*expressions: str) -> str:
    """Returns the message of the denial, "" for none."""
    objects = []
    for number, expression in enumerate(expressions):
        objects += [
            policy(f"p{number}", **validations(expression)),
            binding(f"b{number}", of=f"p{number}"),
        ]
    try:
        run(make_admission(*objects), WRITTEN)
    except PolicyDenied as denial:
        return denial.message
    return ""


@given(st.lists(st.sampled_from(EXPRESSIONS), min_size=1, max_size=5))
def test_the_first_that_refuses_decides(expressions: list[str]) -> None:
    together = decide(*expressions)
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(index, "_MOST_TOGETHER", 1)
        assert decide(*expressions) == together


def members(*specs: dict[str, object]) -> list[Validating]:
    objects = []
    for number, spec in enumerate(specs):
        objects += [policy(f"p{number}", **spec), binding(f"b{number}", of=f"p{number}")]
    return list(make_admission(*objects).find(RESOURCE, "", "CREATE"))


def test_a_policy_that_does_not_compile_costs_itself_only() -> None:
    sound, broken, other = members(
        validations("true"), validations("true) || (true"), validations("1 < 2")
    )
    assert sound.group is not None
    assert sound.group is broken.group is other.group
    assert sound.group.expression == "(true\n) && (1 < 2\n)"
    assert [sound.group.includes(f"p{number}") for number in range(3)] == [True, False, True]


@pytest.mark.parametrize(
    "spec",
    [
        {"variables": [{"name": "v", "expression": "1"}], **validations("variables.v == 1")},
        {"paramKind": {"apiVersion": "v1", "kind": "ConfigMap"}, **validations("true")},
        {"auditAnnotations": [{"key": "k", "valueExpression": "'v'"}], **validations("true")},
        {"matchConditions": [{"name": "m", "expression": "true"}], **validations("true")},
        validations("object.data.all(key, true)"),
        validations("object.data.a.matches('x')"),
        validations("authorizer.path('/x').check('get').allowed()"),
        validations("true" + " && true" * 1000),
        {
            "matchConstraints": {
                "resourceRules": [
                    {
                        "apiGroups": [""],
                        "apiVersions": ["v1"],
                        "operations": ["CREATE"],
                        "resources": ["*"],
                    }
                ]
            },
            **validations("true"),
        },
    ],
)
def test_what_costs_more_does_more_or_matches_others_is_evaluated_alone(
    spec: dict[str, object],
) -> None:
    first, odd, second = members(validations("true"), spec, validations("true"))
    assert first.group is second.group is not None
    assert odd.group is None
