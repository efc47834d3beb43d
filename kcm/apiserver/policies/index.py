"""The policies and their bindings, from the watch caches, by the requests that they are about.

Source: staging/src/k8s.io/apiserver/pkg/admission/plugin/policy/generic/policy_source.go,
Kubernetes 1.33.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

from kcm import errors
from kcm.api import scheme
from kcm.api.admissionregistration_v1 import (
    GROUP,
    MatchResources,
    ValidatingAdmissionPolicy,
    ValidatingAdmissionPolicyBinding,
)
from kcm.api.scheme import Resource
from kcm.apiextensions.cel.policy_programs import Scope
from kcm.apimachinery.meta_v1 import KubeObject
from kcm.apiserver.cache.watch_cache import WatchCache
from kcm.apiserver.policies.caches import PolicyCaches
from kcm.apiserver.policies.matching import Matcher
from kcm.apiserver.policies.params import find_param_kind

_MOST_KEPT = 4096  # kinds of requests for which the policies are kept ready


@dataclass(frozen=True)
class PreparedBinding:
    """A binding with its matcher."""

    binding: ValidatingAdmissionPolicyBinding
    matcher: Matcher
    fault: str = ""  # what is wrong with its selectors


def _prepare(matching: MatchResources | None) -> tuple[Matcher, str]:
    """Returns the matcher, and what is wrong with its selectors, "" if nothing is.

    With wrong selectors, the matcher has none, so that the failure policy decides about all
    requests that the rules name.
    """
    try:
        return Matcher(matching), ""
    except errors.BadRequest as error:
        assert matching is not None
        bare = matching.replace(namespace_selector=None, object_selector=None)
        return Matcher(bare), error.message


class PreparedPolicy:
    """A policy with its matcher and its bindings, at least one."""

    def __init__(
        self, policy: ValidatingAdmissionPolicy, bindings: Sequence[PreparedBinding]
    ) -> None:
        self.policy = policy
        self.bindings = bindings
        self.matcher, self.fault = _prepare(policy.spec.match_constraints)
        self.scope = Scope(params=policy.spec.param_kind is not None, authorizer=True)
        self.variables = {one.name: one.expression for one in policy.spec.variables or ()}

    def find_param_kind(self) -> Resource | None:
        """Returns the kind of the parameters, None if there are none. Raises UnknownKind.

        It is found anew each time: custom kinds come and go.
        """
        kind = self.policy.spec.param_kind
        return None if kind is None else find_param_kind(kind)


_Request = tuple[str, str, str, str]  # group, plural, subresource, operation


class PolicyIndex:
    """Finds the policies for a request. It is rebuilt when a policy or binding has changed."""

    def __init__(self, caches: PolicyCaches) -> None:
        models = (ValidatingAdmissionPolicy, ValidatingAdmissionPolicyBinding)
        self._sources = [caches.cache(scheme.resource_of(model)) for model in models]
        self._seen: tuple[int, ...] = ()
        self._policies: Sequence[PreparedPolicy] = ()
        self._ready: dict[_Request, Sequence[PreparedPolicy]] = {}

    def find(
        self, resource: Resource, subresource: str, operation: str
    ) -> Sequence[PreparedPolicy]:
        """Returns the policies that may match such requests, by name.

        Policies and webhooks themselves are exempt, so that a policy cannot keep everybody from
        changing it. Raises StoreUnavailable while the policies are not loaded.
        """
        numbers = tuple(source.generation for source in self._sources)
        if numbers != self._seen:
            self._rebuild(numbers)
        if not self._policies or resource.group == GROUP:
            return ()
        key = (resource.group, resource.plural, subresource, operation)
        matching = self._ready.get(key)
        if matching is None:
            if len(self._ready) >= _MOST_KEPT:
                self._ready.clear()
            matching = self._ready[key] = [
                prepared
                for prepared in self._policies
                if prepared.matcher.may_match(resource, subresource, operation)
            ]
        return matching

    def _rebuild(self, numbers: tuple[int, ...]) -> None:
        if not all(source.position >= 0 for source in self._sources):
            raise errors.StoreUnavailable("the admission policies are not loaded yet")
        policies, bindings = (_objects(source) for source in self._sources)
        by_policy: dict[str, list[PreparedBinding]] = {}
        for binding in bindings:
            assert isinstance(binding, ValidatingAdmissionPolicyBinding)
            prepared = PreparedBinding(binding, *_prepare(binding.spec.match_resources))
            by_policy.setdefault(binding.spec.policy_name or "", []).append(prepared)
        bound_policies = [
            PreparedPolicy(policy, by_policy[policy.name])
            for policy in policies
            if isinstance(policy, ValidatingAdmissionPolicy) and policy.name in by_policy
        ]
        self._policies, self._ready, self._seen = bound_policies, {}, numbers


def _objects(source: WatchCache) -> list[KubeObject]:
    return [entry.obj for entry in source.entries()]
