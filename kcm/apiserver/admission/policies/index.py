"""The policies and their bindings, from the watch caches, by the requests that they are about.

Source: staging/src/k8s.io/apiserver/pkg/admission/plugin/policy/generic/policy_source.go,
Kubernetes 1.33.
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from typing import Generic, TypeVar

from kcm.api.admissionregistration_v1 import (
    MutatingAdmissionPolicy,
    MutatingAdmissionPolicyBinding,
    ValidatingAdmissionPolicy,
    ValidatingAdmissionPolicyBinding,
)
from kcm.api.scheme import Kinds, Resource
from kcm.apiextensions.cel.policies import may_be_joined
from kcm.apiextensions.cel.policy_programs import Scope
from kcm.apimachinery.meta_v1 import KubeObject
from kcm.apiserver.admission.index import RequestIndex
from kcm.apiserver.admission.matching import Matcher, prepare_matcher
from kcm.apiserver.admission.policies.groups import PolicyGroup
from kcm.apiserver.cache.caches import Caches

PolicyT = TypeVar("PolicyT", bound=ValidatingAdmissionPolicy | MutatingAdmissionPolicy)
BindingT = TypeVar(
    "BindingT", bound=ValidatingAdmissionPolicyBinding | MutatingAdmissionPolicyBinding
)
_MOST_TOGETHER = 16  # policies in a group: one that refuses costs the evaluation of so many more
_LONGEST = 4096  # characters of the expressions of a policy in a group


@dataclass(frozen=True)
class PreparedBinding(Generic[BindingT]):
    """A binding with its matcher."""

    binding: BindingT
    matcher: Matcher
    fault: str = ""  # what is wrong with its selectors


class PreparedPolicy(Generic[PolicyT, BindingT]):
    """A policy with its matcher and its bindings, at least one."""

    def __init__(
        self,
        policy: PolicyT,
        bindings: Sequence[PreparedBinding[BindingT]],
        served: Kinds,
    ) -> None:
        self.policy = policy
        self.bindings = bindings
        self._served = served
        self.matcher, self.fault = prepare_matcher(policy.spec.match_constraints, served)
        self.scope = Scope(
            params=policy.spec.param_kind is not None,
            authorizer=True,
            patches=isinstance(policy, MutatingAdmissionPolicy),
        )
        self.variables = {one.name: one.expression for one in policy.spec.variables or ()}
        self.group: PolicyGroup | None = None  # the policies that it can be evaluated with

    def find_param_kind(self) -> Resource | None:
        """Returns the kind of the parameters, None if there are none. Raises UnknownKind.

        It is found anew each time: custom kinds come and go.
        """
        kind = self.policy.spec.param_kind
        if kind is None:
            return None
        return self._served.by_gvk(kind.api_version or "", kind.kind or "")


Validating = PreparedPolicy[ValidatingAdmissionPolicy, ValidatingAdmissionPolicyBinding]
Mutating = PreparedPolicy[MutatingAdmissionPolicy, MutatingAdmissionPolicyBinding]


class PolicyIndex(RequestIndex[PreparedPolicy[PolicyT, BindingT]], Generic[PolicyT, BindingT]):
    """Finds the policies of one sort that bindings apply."""

    def __init__(self, caches: Caches, policy: type[PolicyT], binding: type[BindingT]) -> None:
        self._policy, self._binding = policy, binding
        super().__init__(caches, (policy, binding))

    def prepare(
        self, *objects: Sequence[KubeObject]
    ) -> Sequence[PreparedPolicy[PolicyT, BindingT]]:
        policies, bindings = objects
        by_policy: dict[str, list[PreparedBinding[BindingT]]] = {}
        for binding in bindings:
            assert isinstance(binding, self._binding)  # the second of the kinds
            matching = prepare_matcher(binding.spec.match_resources, self.served)
            prepared = PreparedBinding(binding, *matching)
            by_policy.setdefault(binding.spec.policy_name or "", []).append(prepared)
        return [
            PreparedPolicy(policy, by_policy[policy.name], self.served)
            for policy in policies
            if isinstance(policy, self._policy) and policy.name in by_policy
        ]


class ValidatingPolicyIndex(
    PolicyIndex[ValidatingAdmissionPolicy, ValidatingAdmissionPolicyBinding]
):
    """Finds ValidatingAdmissionPolicies, some of which are evaluated together."""

    def __init__(self, caches: Caches) -> None:
        super().__init__(caches, ValidatingAdmissionPolicy, ValidatingAdmissionPolicyBinding)

    def prepare(self, *objects: Sequence[KubeObject]) -> Sequence[Validating]:
        bound = super().prepare(*objects)
        _group_policies(bound)
        return bound


class MutatingPolicyIndex(PolicyIndex[MutatingAdmissionPolicy, MutatingAdmissionPolicyBinding]):
    """Finds MutatingAdmissionPolicies."""

    def __init__(self, caches: Caches) -> None:
        super().__init__(caches, MutatingAdmissionPolicy, MutatingAdmissionPolicyBinding)


def _group_policies(policies: Iterable[Validating]) -> None:
    """Sets `group` of the policies that can be evaluated together."""
    by_constraints: dict[str, list[Validating]] = {}
    for policy in policies:
        if _is_plain(policy):
            by_constraints.setdefault(repr(policy.policy.spec.match_constraints), []).append(policy)
    for members in by_constraints.values():
        for first in range(0, len(members), _MOST_TOGETHER):
            together = members[first : first + _MOST_TOGETHER]
            if len(together) > 1:
                group = PolicyGroup({one.policy.name: _expressions(one) for one in together})
                for policy in together:
                    policy.group = group


def _is_plain(prepared: Validating) -> bool:
    """Reports whether a policy does nothing when its validations hold, and these cost little."""
    spec = prepared.policy.spec
    if prepared.fault or any(bound.fault for bound in prepared.bindings):
        return False
    if spec.param_kind is not None or spec.variables:
        return False
    if spec.match_conditions or spec.audit_annotations or not spec.validations:
        return False
    texts = _expressions(prepared)
    return sum(map(len, texts)) <= _LONGEST and all(map(may_be_joined, texts))


def _expressions(prepared: Validating) -> list[str]:
    return [validation.expression for validation in prepared.policy.spec.validations or ()]
