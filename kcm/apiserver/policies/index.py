"""The policies and their bindings, from the watch caches, by the requests that they are about.

Source: staging/src/k8s.io/apiserver/pkg/admission/plugin/policy/generic/policy_source.go,
Kubernetes 1.33.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

from kcm.api.admissionregistration_v1 import (
    ValidatingAdmissionPolicy,
    ValidatingAdmissionPolicyBinding,
)
from kcm.api.scheme import Resource
from kcm.apiextensions.cel.policy_programs import Scope
from kcm.apimachinery.meta_v1 import KubeObject
from kcm.apiserver.admission.index import RequestIndex
from kcm.apiserver.admission.matching import Matcher, prepare_matcher
from kcm.apiserver.cache.caches import Caches
from kcm.apiserver.policies.params import find_param_kind


@dataclass(frozen=True)
class PreparedBinding:
    """A binding with its matcher."""

    binding: ValidatingAdmissionPolicyBinding
    matcher: Matcher
    fault: str = ""  # what is wrong with its selectors


class PreparedPolicy:
    """A policy with its matcher and its bindings, at least one."""

    def __init__(
        self, policy: ValidatingAdmissionPolicy, bindings: Sequence[PreparedBinding]
    ) -> None:
        self.policy = policy
        self.bindings = bindings
        self.matcher, self.fault = prepare_matcher(policy.spec.match_constraints)
        self.scope = Scope(params=policy.spec.param_kind is not None, authorizer=True)
        self.variables = {one.name: one.expression for one in policy.spec.variables or ()}

    def find_param_kind(self) -> Resource | None:
        """Returns the kind of the parameters, None if there are none. Raises UnknownKind.

        It is found anew each time: custom kinds come and go.
        """
        kind = self.policy.spec.param_kind
        return None if kind is None else find_param_kind(kind)


class PolicyIndex(RequestIndex[PreparedPolicy]):
    """Finds the policies that bindings apply."""

    def __init__(self, caches: Caches) -> None:
        super().__init__(caches, (ValidatingAdmissionPolicy, ValidatingAdmissionPolicyBinding))

    def prepare(self, *objects: Sequence[KubeObject]) -> Sequence[PreparedPolicy]:
        policies, bindings = objects
        by_policy: dict[str, list[PreparedBinding]] = {}
        for binding in bindings:
            assert isinstance(binding, ValidatingAdmissionPolicyBinding)
            prepared = PreparedBinding(binding, *prepare_matcher(binding.spec.match_resources))
            by_policy.setdefault(binding.spec.policy_name or "", []).append(prepared)
        return [
            PreparedPolicy(policy, by_policy[policy.name])
            for policy in policies
            if isinstance(policy, ValidatingAdmissionPolicy) and policy.name in by_policy
        ]
