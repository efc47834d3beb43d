"""The webhooks of all configurations, in the order in which they are asked.

Source: staging/src/k8s.io/apiserver/pkg/admission/configuration, Kubernetes 1.33.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, replace

from kcm.api.admissionregistration_v1 import (
    IF_NEEDED,
    IGNORE,
    MatchResources,
    MutatingWebhook,
    MutatingWebhookConfiguration,
    NamedRuleWithOperations,
    ValidatingWebhook,
    ValidatingWebhookConfiguration,
)
from kcm.apimachinery.meta_v1 import KubeObject
from kcm.apiserver.admission.index import RequestIndex
from kcm.apiserver.admission.matching import Matcher, prepare_matcher
from kcm.apiserver.cache.caches import Caches
from kcm.apiserver.egress.credentials import BackendCredentials
from kcm.apiserver.egress.posting import Backend

_TIMEOUT = 10  # seconds, where an object was stored without its defaults


@dataclass(frozen=True)
class PreparedWebhook:
    """A webhook with what is made of it once."""

    webhook: ValidatingWebhook
    configuration: str  # the name of its object
    number: int  # counts all webhooks of the kind
    matcher: Matcher
    backend: Backend
    fault: str = ""  # what is wrong with its selectors

    @property
    def name(self) -> str:
        return self.webhook.name

    @property
    def fails_open(self) -> bool:
        """Whether a request is admitted when the webhook cannot be asked."""
        return self.webhook.failure_policy == IGNORE

    @property
    def is_reinvoked(self) -> bool:
        """Whether it is asked again when others changed the object after it."""
        webhook = self.webhook
        return isinstance(webhook, MutatingWebhook) and webhook.reinvocation_policy == IF_NEEDED

    @property
    def timeout(self) -> int:
        """The seconds after which a call has failed."""
        return self.webhook.timeout_seconds or _TIMEOUT


class WebhookIndex(RequestIndex[PreparedWebhook]):
    """Finds the webhooks of one sort of configurations: those that mutate or those that validate.

    Configurations are asked in the order of their names.
    """

    def __init__(
        self,
        caches: Caches,
        model: type[ValidatingWebhookConfiguration] | type[MutatingWebhookConfiguration],
        credentials: BackendCredentials,
    ) -> None:
        super().__init__(caches, (model,))
        self._credentials = credentials

    def prepare(self, *objects: Sequence[KubeObject]) -> Sequence[PreparedWebhook]:
        every: list[PreparedWebhook] = []
        for configuration in objects[0]:
            assert isinstance(  # the kind is one of the two
                configuration, ValidatingWebhookConfiguration | MutatingWebhookConfiguration
            )
            for webhook in configuration.webhooks or ():
                matcher, fault = prepare_matcher(_matching(webhook), self.served)
                backend = replace(
                    self._credentials.build_backend(webhook.client_config),
                    names=(webhook.name, configuration.name),
                )
                number = len(every)
                prepared = PreparedWebhook(
                    webhook, configuration.name, number, matcher, backend, fault
                )
                every.append(prepared)
        return [prepared for prepared in every if prepared.webhook.rules]


def _matching(webhook: ValidatingWebhook) -> MatchResources:
    rules = [
        NamedRuleWithOperations(
            operations=rule.operations,
            api_groups=rule.api_groups,
            api_versions=rule.api_versions,
            resources=rule.resources,
            scope=rule.scope,
        )
        for rule in webhook.rules or ()
    ]
    return MatchResources(
        namespace_selector=webhook.namespace_selector,
        object_selector=webhook.object_selector,
        match_policy=webhook.match_policy,
        resource_rules=rules,
    )
