"""Evaluates the expressions of ValidatingAdmissionPolicies, within a budget.

All expressions of one policy on one request have `BUDGET` seconds of CPU time together; upstream
has a budget of steps instead. An expression that may cost much is evaluated in a child process,
which can be killed.

Source: staging/src/k8s.io/apiserver/pkg/admission/plugin/cel, Kubernetes 1.33.
"""

from __future__ import annotations

import time
from collections.abc import Mapping
from typing import Any

from kcm.apiextensions.cel import budget
from kcm.apiextensions.cel.evaluator import RuleEvaluator
from kcm.apiextensions.cel.expressions import ExpressionResult, evaluate_program
from kcm.apiextensions.cel.policy_programs import (
    CompiledPolicyExpression,
    Scope,
    compile_expression,
    environment_of,
)

BUDGET = 1.0  # seconds of CPU for the expressions of one policy on one request
OUT_OF_BUDGET = (
    "validation failed due to running out of cost budget, no further validation rules will be run"
)
_EVALUATOR = RuleEvaluator()


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
    ) -> None:
        """`variables` are the expressions of the policy's variables by their names, in order.

        `activations` are kept by the caller for all policies without variables and parameters.
        """
        self._given = given
        self._scope = scope
        self._texts = variables
        self._params = params
        self._values: dict[str, Any] = {}
        self._faults: dict[str, str] = {}  # why a variable has no value
        self._activations = activations if not variables and params is None else None
        self._left = BUDGET
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
        if self._left <= 0:
            self.exhausted = True
        if self.exhausted:
            return ExpressionResult(exhausted=True)
        if self._activations is not None and self._scope in self._activations:
            return self._run_shared(compiled, self._activations[self._scope])
        began = time.thread_time()
        used = {name: self._values[name] for name in compiled.uses if name in self._values}
        length, count = self._size(used)
        if budget.estimate_calls(compiled.text, length, count) <= budget.SMALL:
            activation = self._activation(used)
            result = evaluate_program(compiled.program, activation=activation)
            self._left -= time.thread_time() - began
        else:
            result = _EVALUATOR.evaluate(
                compiled.text, self._data(used), self._left, scope=self._scope
            )
            self._left -= time.thread_time() - began + result.spent
        self.exhausted = result.exhausted
        return result

    def _run_shared(self, compiled: CompiledPolicyExpression, activation: Any) -> ExpressionResult:
        """Evaluates with variables that the library holds already."""
        length, count = self._given.size
        if budget.estimate_calls(compiled.text, length, count) > budget.SMALL:
            result = _EVALUATOR.evaluate(
                compiled.text, self._data({}), self._left, scope=self._scope
            )
        else:
            result = evaluate_program(compiled.program, activation=activation)
        self._left -= result.spent
        self.exhausted = result.exhausted
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
            return environment.Activation(data=self._data(used))
        if self._scope not in self._activations:
            self._activations[self._scope] = environment.Activation(data=self._data(used))
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
            if name in self._faults and f'"{name}"' in error:
                return f'composited variable "{name}" fails to evaluate: {self._faults[name]}'
        return error.removeprefix("rule evaluation error: ")
