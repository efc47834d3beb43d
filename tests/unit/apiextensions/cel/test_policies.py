"""The evaluation of a policy's expressions.

Some cases follow condition_test.go and composition_test.go of
staging/src/k8s.io/apiserver/pkg/admission/plugin/cel, Kubernetes 1.33.
"""

from __future__ import annotations

import time
from typing import Any

import pytest

from kcm.apiextensions.cel import budget, policies
from kcm.apiextensions.cel.lanes import Lanes
from kcm.apiextensions.cel.library import authorization
from kcm.apiextensions.cel.policies import OUT_OF_BUDGET, PolicyEvaluation, PolicyInput
from kcm.apiextensions.cel.policy_programs import Scope, compile_expression

OBJECT = {"metadata": {"name": "a", "labels": {"x": "y"}}, "data": {"k": "v", "n": "3"}}
PLAIN = Scope()


def evaluation(
    variables: dict[str, str] | None = None, scope: Scope = PLAIN, **given: Any
) -> PolicyEvaluation:
    inputs = {"object": OBJECT, "oldObject": None, "request": {}, "namespaceObject": None}
    params = given.pop("params", None)
    return PolicyEvaluation(PolicyInput(inputs | given), scope, variables or {}, params=params)


@pytest.mark.parametrize(
    ("text", "value"),
    [
        ("object.metadata.name", "a"),
        ("has(object.spec)", False),
        ("oldObject == null", True),
        ("variables.next == 4", True),
        ("has(object.spec) && variables.fails == 1", False),
        ("variables.list.size()", 2),
    ],
)
def test_expressions_have_values(text: str, value: Any) -> None:
    texts = {
        "three": "int(object.data.n)",
        "next": "variables.three + 1",
        "fails": "object.spec.x",
        "list": "object.data.map(k, k)",
    }
    assert evaluation(texts).evaluate(text).value == value


@pytest.mark.parametrize(
    ("text", "why"),
    [
        ("object.spec", "expression 'object.spec' resulted in error: no such key: spec"),
        ("nothing(", "compilation error: compilation failed: ERROR: <input>:1:9: Syntax error"),
        ("variables.a == 1", 'composited variable "a" fails to evaluate: no such key: '),
        ("variables.c == 1", 'variable "c" fails to evaluate: composited variable "a" fails to'),
        ("variables.broken == 1", 'composited variable "broken" fails to evaluate: ERROR'),
        ("params.x == 1", "undeclared reference to 'params"),
    ],
)
def test_errors_say_why(text: str, why: str) -> None:
    texts = {"a": "variables.b", "b": "variables.a", "c": "variables.a + 1", "broken": "("}
    found = evaluation(texts).evaluate(text)
    assert why in found.error


def test_long_chains_of_variables_are_computed() -> None:
    texts = {"v0": "1"} | {f"v{n}": f"variables.v{n - 1} + 1" for n in range(1, 1000)}
    assert evaluation(texts).evaluate("variables.v999 == 1000").value is True


@pytest.mark.parametrize(
    "text", ["(" * 100_000, "1" + "+1" * 500_000, "[" * 50_000, "object" + ".a" * 200_000]
)
def test_huge_expressions_are_refused_and_do_no_harm(text: str) -> None:
    assert compile_expression(text, PLAIN).error


def test_parameters_and_the_authorizer_are_there_in_their_scopes() -> None:
    with_params = evaluation(scope=Scope(params=True), params={"most": 3})
    assert with_params.evaluate("params.most > 2").value is True
    asked = []

    def ask(check: Any) -> tuple[bool, str]:
        asked.append(dict(check))
        return check["verb"] == "get", "because"

    may = evaluation(scope=Scope(authorizer=True), authorizer=authorization.authorizer())
    text = "authorizer.group('apps').resource('deployments').subresource('scale').namespace('n')"
    with authorization.asking(ask):
        assert may.evaluate(f"{text}.name('x').check('get').allowed()").value is True
        assert may.evaluate(f"{text}.check('delete').reason()").value == "because"
    assert asked[0] == {
        "account": "", "group": "apps", "resource": "deployments", "subresource": "scale",
        "namespace": "n", "name": "x", "verb": "get",
    }  # fmt: skip


def test_the_budget_is_one_for_all_expressions(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(policies, "BUDGET", 0.0)
    spent = evaluation()
    found = spent.evaluate("true")
    assert (found.error, found.exhausted, spent.exhausted) == (OUT_OF_BUDGET, True, True)


def test_what_may_cost_much_is_cut(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(policies, "BUDGET", 0.2)
    many = {f"{'k' * 200}{number}": "x" for number in range(60)}
    text = "object.all(a, object.all(b, object.all(c, a.replace('', b.replace('', a)) != c)))"
    assert evaluation(object=many).evaluate(text).error == OUT_OF_BUDGET


def test_values_from_the_child_process_can_be_used() -> None:
    texts = {"words": "object.data.k.replace('v', 'a,b').split(',')"}
    assert evaluation(texts).evaluate("variables.words.size() == 2").value is True


def test_an_expression_knows_its_type_and_the_variables_it_uses() -> None:
    compiled = compile_expression("variables.a > 1 && variables . b == variables.a", PLAIN)
    assert (compiled.type, compiled.uses) == ("BOOL", ("a", "b"))
    assert compile_expression("object.x", PLAIN).type == "DYN"


def test_searches_count_as_squares_and_nothing_else() -> None:
    large = budget.size({"data": "x" * 100_000})
    assert budget.estimate_calls("object.data.size() < 3", *large) <= budget.SMALL
    assert budget.estimate_calls("object.data.contains(object.data)", *large) > budget.SMALL


def test_all_bindings_and_parameters_of_a_policy_share_its_budget() -> None:
    left = policies.TimeLeft()
    inputs = PolicyInput({"object": OBJECT})
    first, second = (PolicyEvaluation(inputs, PLAIN, {}, left=left) for _ in range(2))
    assert first.evaluate("true").value is True
    left.use_up()
    assert second.evaluate("true").error == OUT_OF_BUDGET


def test_an_expression_that_took_long_leaves_the_server_process(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    lanes = Lanes()
    monkeypatch.setattr(policies, "_LANES", lanes)
    many = {f"k{number}": "v" * 20 for number in range(20_000)}
    text = " && ".join(["object == object"] * 15)
    length, _ = PolicyInput({"object": many}).size
    asks = f"authorizer != null && {text}"
    assert evaluation(object=many, scope=Scope(authorizer=True)).evaluate(asks).error
    assert not lanes.is_slow(asks, length)  # it could not be evaluated anywhere else
    assert evaluation(object=many).evaluate(text).value is True
    assert lanes.is_slow(text, length)
    assert not lanes.is_slow(text, 100)
    with monkeypatch.context() as patched:
        patched.setattr(policies, "evaluate_program", None)
        assert evaluation(object=many).evaluate(text).value is True
    assert evaluation().evaluate(text).value is True
    lanes.close()


def test_all_policies_of_a_request_share_what_it_has(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(policies, "REQUEST_BUDGET", 1.5)
    request = policies.allot_request_time()
    inputs = PolicyInput({"object": OBJECT})
    for _ in range(2):
        left = policies.TimeLeft(request)
        assert PolicyEvaluation(inputs, PLAIN, {}, left=left).evaluate("true").value is True
        left.use_up()
    third = PolicyEvaluation(inputs, PLAIN, {}, left=policies.TimeLeft(request))
    assert third.evaluate("true").error == OUT_OF_BUDGET


def test_what_it_takes_to_pass_a_large_object_to_the_child_process_counts() -> None:
    left = policies.TimeLeft()
    given = PolicyInput({"object": {"data": {f"k{number}": "x" for number in range(40_000)}}})
    checked = PolicyEvaluation(given, PLAIN, {}, left=left)
    before = time.thread_time()
    result = checked.evaluate("object.data.size() > 0 && 'a'.replace('a', 'b') == 'b'")
    here = time.thread_time() - before
    assert result.value is True
    assert policies.BUDGET - left.seconds > result.spent + here / 2
