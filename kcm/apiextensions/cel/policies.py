"""Evaluates the expressions of ValidatingAdmissionPolicies, within a budget.

All expressions of one policy on one request have `BUDGET` seconds of CPU time together, whatever
the number of its bindings and parameters, and all policies `REQUEST_BUDGET`; upstream has a budget
of steps for each binding instead. Passing the variables to and fro counts as well.
An expression that may cost much, or did, is evaluated in a child process, which can be killed.

Source: staging/src/k8s.io/apiserver/pkg/admission/plugin/cel, Kubernetes 1.33.
"""

from __future__ import annotations

import re
import time
from collections.abc import Mapping
from typing import Any

from kcm.apiextensions.cel import budget
from kcm.apiextensions.cel.expressions import EXHAUSTED, ExpressionResult, evaluate_program
from kcm.apiextensions.cel.lanes import LONG, Lanes
from kcm.apiextensions.cel.policy_programs import (
    CompiledPolicyExpression,
    Scope,
    compile_expression,
    environment_of,
)

BUDGET = 1.0  # seconds of CPU for the expressions of one policy on one request
REQUEST_BUDGET = 3.0  # seconds of CPU for those of all policies
OUT_OF_BUDGET = (
    "validation failed due to running out of cost budget, no further validation rules will be run"
)
_LANES = Lanes()
_OWN = re.compile(r"\b(authorizer|variables)\b")
_ASKS = re.compile(r"\bauthorizer\b")  # child processes have no authorizer


def may_be_joined(text: str) -> bool:
    """Reports whether an expression may be a part of a larger one that is evaluated before it: it
    is cheap, uses no variables of its policy, and asks nobody.
    """
    return budget.is_linear(text) and _OWN.search(text) is None


class TimeLeft:
    """The seconds of CPU that are left for a policy on a request.

    What the policy uses is missing from `request` as well, the time for all policies together.
    """

    def __init__(self, request: TimeLeft | None = None, seconds: float | None = None) -> None:
        """`seconds` are those of a policy if they are not given."""
        self._own = BUDGET if seconds is None else seconds
        self._request = request

    @property
    def seconds(self) -> float:
        return self._own if self._request is None else min(self._own, self._request.seconds)

    def use(self, seconds: float) -> None:
        """Takes these seconds away."""
        self._own -= seconds
        if self._request is not None:
            self._request.use(seconds)

    def use_up(self) -> None:
        """Takes all away that is left for the policy."""
        self.use(max(self.seconds, 0.0))
        self._own = min(self._own, 0.0)


def allot_request_time() -> TimeLeft:
    """Returns the time for all policies together on one request."""
    return TimeLeft(seconds=REQUEST_BUDGET)


class PolicyInput:
    """The variables of a request for the expressions of all policies that match it.

    They are converted for the library once, unless a policy has variables or parameters of its own.
    """

    def __init__(self, variables: Mapping[str, Any]) -> None:
        self._variables = dict(variables)
        self._size: tuple[int, int] | None = None

    @property
    def variables(self) -> Mapping[str, Any]:
        return self._variables

    @property
    def size(self) -> tuple[int, int]:
        """The approximate size of the variables in bytes, and the number of values in them."""
        if self._size is None:
            self._size = budget.size(self._variables)
        return self._size


class PolicyEvaluation:
    """Evaluates the expressions of one policy on one request until its budget is used up."""

    def __init__(
        self,
        given: PolicyInput,
        scope: Scope,
        variables: Mapping[str, str],
        *,
        params: Any = None,
        activations: dict[Scope, Any] | None = None,
        left: TimeLeft | None = None,
    ) -> None:
        """`variables` are the expressions of the policy's variables by their names, in order.

        `activations` are kept by the caller for all policies without variables and parameters, and
        `left` for all bindings and parameters of one policy.
        """
        self._given = given
        self._scope = scope
        self._texts = variables
        self._params = params
        self._values: dict[str, Any] = {}
        self._faults: dict[str, str] = {}  # why a variable has no value
        self._activations = activations if not variables and params is None else None
        self._left = left if left is not None else TimeLeft()
        self.exhausted = False

    def evaluate(self, text: str) -> ExpressionResult:
        """Returns the result of an expression, or of why there is none, in upstream's words."""
        compiled = compile_expression(text, self._scope)
        if compiled.program is None:
            return ExpressionResult(
                error=f"compilation error: compilation failed: {compiled.error}"
            )
        self._compute(compiled.uses)
        result = self._run(compiled)
        if self.exhausted:
            return ExpressionResult(error=OUT_OF_BUDGET, exhausted=True)
        if result.error:
            why = self._explain(compiled, result.error)
            return ExpressionResult(error=f"expression '{text}' resulted in error: {why}")
        return result

    def holds(self, text: str) -> bool:
        """Reports whether an expression is true, and cheap enough to be evaluated here."""
        compiled, (length, count) = compile_expression(text, self._scope), self._given.size
        is_small = budget.estimate_calls(text, length, count) <= budget.SMALL
        if compiled.program is None or not is_small or _LANES.is_slow(text, length):
            return False
        return self._run(compiled).value is True

    def _compute(self, names: tuple[str, ...]) -> None:
        """Computes the variables of these names, and those that they use.

        One that fails has no value, so that an expression fails only if it comes to use it. A
        variable may use those that come before it.
        """
        needed: set[str] = set()
        waiting = list(names)
        while waiting:
            name = waiting.pop()
            is_done = name in needed or name in self._values or name in self._faults
            if not is_done and name in self._texts:
                needed.add(name)
                waiting += compile_expression(self._texts[name], self._scope).uses
        for name in self._texts if needed else ():
            if name in needed:
                self._compute_one(name)

    def _compute_one(self, name: str) -> None:
        compiled = compile_expression(self._texts[name], self._scope)
        if compiled.program is None:
            self._faults[name] = compiled.error
            return
        result = self._run(compiled)
        if self.exhausted:
            self._faults[name] = OUT_OF_BUDGET
        elif result.error:
            self._faults[name] = self._explain(compiled, result.error)
        else:
            self._values[name] = result.value

    def _run(self, compiled: CompiledPolicyExpression) -> ExpressionResult:
        if self._left.seconds <= 0:
            self.exhausted = True
        if self.exhausted:
            return EXHAUSTED
        began = time.thread_time()
        if self._activations is not None and self._scope in self._activations:
            result = self._run_with(compiled, {}, self._given.size, self._activations[self._scope])
        else:
            used = {name: self._values[name] for name in compiled.uses if name in self._values}
            result = self._run_with(compiled, used, self._size(used), None)
        self._left.use(time.thread_time() - began)
        if result.exhausted:
            self.exhausted = True
            self._left.use_up()
        return result

    def _run_with(
        self,
        compiled: CompiledPolicyExpression,
        used: Mapping[str, Any],
        size: tuple[int, int],
        activation: Any,
    ) -> ExpressionResult:
        """Evaluates with these variables of the policy; `activation` has all of them, if given."""
        text, (length, count) = compiled.text, size
        is_small = budget.estimate_calls(text, length, count) <= budget.SMALL
        if not is_small or _LANES.is_slow(text, length):
            data, seconds = self._data(used), self._left.seconds
            result = _LANES.evaluate(text, data, length, seconds, scope=self._scope)
            self._left.use(result.spent)  # in the child process
            return result
        if activation is None:
            activation = self._activation(used)
        result = evaluate_program(compiled.program, activation=activation)
        if result.spent >= LONG and not _ASKS.search(text):
            _LANES.note(text, length, result)  # it held up every other request of this process
        return result

    def _size(self, used: Mapping[str, Any]) -> tuple[int, int]:
        length, count = self._given.size
        if not used and self._params is None:
            return length, count
        more, values = budget.size([used, self._params])
        return length + more, count + values

    def _activation(self, used: Mapping[str, Any]) -> Any:
        """Returns the variables as the library holds them."""
        environment = environment_of(self._scope)
        if self._activations is None:
            return environment.hold(self._data(used))
        if self._scope not in self._activations:
            self._activations[self._scope] = environment.hold(self._data(used))
        return self._activations[self._scope]

    def _data(self, used: Mapping[str, Any]) -> dict[str, Any]:
        data = {**self._given.variables, "variables": dict(used)}
        if self._scope.params:
            data["params"] = self._params
        if not self._scope.authorizer:
            data.pop("authorizer", None)
        return data

    def _explain(self, compiled: CompiledPolicyExpression, error: str) -> str:
        """Returns the error of a variable if the expression has failed for want of it."""
        for name in compiled.uses:
            if name in self._faults and error == f"no such key: {name}":
                return f'composited variable "{name}" fails to evaluate: {self._faults[name]}'
        return error
