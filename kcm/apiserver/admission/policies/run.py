"""`PolicyRun`: what the two sorts of policies have in common when they are run on a write.

Source: staging/src/k8s.io/apiserver/pkg/admission/plugin/policy/generic/policy_dispatcher.go,
Kubernetes 1.36.
"""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Iterator
from typing import Any, Generic

from kcm import errors
from kcm.api.admissionregistration_v1 import FAIL
from kcm.api.scheme import Resource
from kcm.apiextensions.cel.policies import PolicyEvaluation, TimeLeft, allot_request_time
from kcm.apiserver.admission.attributes import WriteAttributes
from kcm.apiserver.admission.context import WriteContext
from kcm.apiserver.admission.policies.index import (
    BindingT,
    PolicyT,
    PreparedBinding,
    PreparedPolicy,
)
from kcm.apiserver.admission.policies.params import (
    NO_PARAMS,
    BindingConfigurationError,
    collect_params,
)
from kcm.apiserver.cache.caches import Caches


class PolicyRun(ABC, Generic[PolicyT, BindingT]):
    """Runs policies on one write."""

    def __init__(self, caches: Caches, context: WriteContext) -> None:
        self._caches = caches
        self._context = context
        self._left = allot_request_time()

    @property
    def _write(self) -> WriteAttributes:
        return self._context.write

    @abstractmethod
    def _deny(
        self,
        prepared: PreparedPolicy[PolicyT, BindingT],
        bound: PreparedBinding[BindingT] | None,
        why: str,
        reason: str,
    ) -> None:
        """Notes that a policy cannot be run, and its failure policy is Fail. `reason` is that of a
        Status, "" for the usual one.
        """

    def _match(self, prepared: PreparedPolicy[PolicyT, BindingT]) -> Resource | None:
        """Returns the version of the written kind for which a policy is, None if it is not."""
        return prepared.matcher.match(self._write, self._context.namespace_labels)

    def _invocations(
        self, prepared: PreparedPolicy[PolicyT, BindingT]
    ) -> Iterator[tuple[PreparedBinding[BindingT], Any]]:
        """Yields the bindings of a policy that match, each with every parameter."""
        kind, fault = _find_param_kind(prepared) if prepared.scope.params else (None, "")
        if prepared.fault or fault:
            why = f"failed to configure policy: {prepared.fault or fault}"
            self._note_fault(prepared, None, why)
            return
        for bound in prepared.bindings:
            if bound.matcher.match(self._write, self._context.namespace_labels) is None:
                continue
            try:
                params = NO_PARAMS
                if bound.fault or kind is not None:
                    params = self._collect(bound, kind)
            except BindingConfigurationError as error:
                why = f"failed to configure binding: {error.message}"
                self._note_fault(prepared, bound, why)
                continue
            for param in params:
                yield bound, param

    def _collect(self, bound: PreparedBinding[BindingT], kind: Resource | None) -> Any:
        if bound.fault:
            raise BindingConfigurationError(bound.fault)
        reference, namespace = bound.binding.spec.param_ref, self._write.namespace_name
        return collect_params(self._caches, kind, reference, namespace)

    def _note_fault(
        self,
        prepared: PreparedPolicy[PolicyT, BindingT],
        bound: PreparedBinding[BindingT] | None,
        why: str,
        reason: str = "",
    ) -> None:
        if (prepared.policy.spec.failure_policy or FAIL) == FAIL:
            self._deny(prepared, bound, why, reason)

    def _prepare(
        self,
        prepared: PreparedPolicy[PolicyT, BindingT],
        matched: Resource,
        param: Any,
        left: TimeLeft,
    ) -> PolicyEvaluation:
        """Returns what evaluates the expressions of a policy."""
        given, activations = self._context.input(matched)
        return PolicyEvaluation(
            given,
            prepared.scope,
            prepared.variables,
            params=param,
            activations=activations,
            left=left,
        )


def _find_param_kind(prepared: PreparedPolicy[PolicyT, BindingT]) -> tuple[Resource | None, str]:
    """Returns the kind of a policy's parameters, if it has any, and why it cannot be found."""
    try:
        return prepared.find_param_kind(), ""
    except errors.UnknownKind:
        named = prepared.policy.spec.param_kind
        assert named is not None
        shown = f"{named.api_version}, Kind={named.kind}"
        return None, f"failed to find resource referenced by paramKind: '{shown}'"
