"""Which writes of controllers go through the API server: those that policies or webhooks are about.

As on a cluster of Kubernetes, a webhook for pods is so asked about the pods of a ReplicaSet, too.
"""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path

from kcm.api.admissionregistration_v1 import (
    GROUP,
    MutatingWebhookConfiguration,
    ValidatingAdmissionPolicy,
    ValidatingAdmissionPolicyBinding,
    ValidatingWebhookConfiguration,
)
from kcm.api.scheme import Resource
from kcm.apimachinery.meta_v1 import KubeObject
from kcm.helpers.admission_rules import Rule, names_request
from kcm.informers.factory import SharedInformerFactory
from kcm.informers.indexer import Indexer
from kcm.settings import Settings
from kcm.store.remote.kubeconfig import ClusterConnection, load

_MODELS: tuple[type[KubeObject], ...] = (
    MutatingWebhookConfiguration,
    ValidatingWebhookConfiguration,
    ValidatingAdmissionPolicy,
    ValidatingAdmissionPolicyBinding,
)
_SORTS = tuple[str, str, str, str]  # group, plural, subresource, operation
_MOST_KEPT = 4096
NOBODY = "none"  # the setting that sends nothing through an API server


class CachedAdmissionRules:
    """The rules of webhooks, and of policies that are bound, from the informers of a process.

    Threads may share it. Without informers, there are no rules.
    """

    def __init__(self) -> None:
        self._stores: list[Indexer[KubeObject]] = []
        self.resources = tuple(model.resource for model in _MODELS)
        self._seen: tuple[int, ...] = ()
        self._rules: list[Rule] = []
        self._answers: dict[_SORTS, bool] = {}

    def follow(self, factory: SharedInformerFactory) -> None:
        """Reads the rules from informers of this factory, which are not started yet."""
        self._stores = [factory.informer_for(model).get_store() for model in _MODELS]

    def name(self, resource: Resource, subresource: str, operation: str) -> bool:
        """Reports whether some rule names such writes. What configures admission is exempt."""
        objects = [store.list() for store in self._stores]
        if not any(objects) or resource.group == GROUP:
            return False
        now = tuple(id(obj) for listed in objects for obj in listed)
        if now != self._seen:
            self._rules, self._answers = list(_rules(*objects)), {}
            self._seen = now
        sort = (resource.group, resource.plural, subresource, operation)
        answer = self._answers.get(sort)
        if answer is None:
            if len(self._answers) >= _MOST_KEPT:
                self._answers.clear()
            answer = any(names_request(rule, *sort) for rule in self._rules)
            self._answers[sort] = answer
        return answer


def _rules(*objects: list[KubeObject]) -> Iterator[Rule]:
    *webhooks, policies, bindings = objects
    for listed in webhooks:
        for configuration in listed:
            assert isinstance(  # listed by these resources
                configuration, MutatingWebhookConfiguration | ValidatingWebhookConfiguration
            )
            for webhook in configuration.webhooks or ():
                yield from webhook.rules or ()
    bound = {
        binding.spec.policy_name
        for binding in bindings
        if isinstance(binding, ValidatingAdmissionPolicyBinding)
    }
    for policy in policies:
        assert isinstance(policy, ValidatingAdmissionPolicy)  # listed by that resource
        constraints = policy.spec.match_constraints
        if policy.name in bound and constraints is not None:
            yield from constraints.resource_rules or ()


def find_admission_server(settings: Settings) -> ClusterConnection | None:
    """Returns the API server that admits the writes of controllers, None if there is none (yet).

    Raises ConfigurationError for a kubeconfig that cannot be used.
    """
    named = settings.admission_kubeconfig
    path = Path(named) if named else settings.state_dir / "kubeconfig"
    return load(path) if named or path.exists() else None
