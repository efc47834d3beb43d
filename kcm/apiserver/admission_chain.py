"""Admission: the webhooks and policies that a write must pass, in upstream's order.

Mutating webhooks come first, then policies, then validating webhooks. A write that none of them is
about costs three looks into tables.

Source: pkg/kubeapiserver/options/plugins.go, Kubernetes 1.33.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field, replace
from functools import partial
from typing import Any

from prometheus_client import CollectorRegistry

from kcm.api.admissionregistration_v1 import (
    MutatingWebhookConfiguration,
    ValidatingWebhookConfiguration,
)
from kcm.apiextensions import conversion
from kcm.apimachinery.meta_v1 import KubeObject
from kcm.apiserver.admission.attributes import WriteAttributes
from kcm.apiserver.admission.request import AdmissionRequest
from kcm.apiserver.backends.client import BackendClient
from kcm.apiserver.backends.credentials import BackendCredentials
from kcm.apiserver.backends.waiting import LoopWaiter
from kcm.apiserver.cache.caches import Caches
from kcm.apiserver.policies.admission import PolicyAdmission
from kcm.apiserver.policies.index import PreparedPolicy
from kcm.apiserver.policies.metrics import PolicyMetrics
from kcm.apiserver.webhooks.index import PreparedWebhook, WebhookIndex
from kcm.apiserver.webhooks.metrics import WebhookMetrics
from kcm.apiserver.webhooks.mutating import MutatingWebhooks, Readmit
from kcm.apiserver.webhooks.requester import Deadline, Requester
from kcm.apiserver.webhooks.validating import ValidatingWebhooks
from kcm.redisio import greenlets

_REQUEST_TIMEOUT = 60.0  # seconds that a request may wait for webhooks, as upstream


@dataclass(frozen=True)
class WebhookCredentials:
    """How the API server identifies itself to webhooks of each sort."""

    mutating: BackendCredentials = field(default_factory=BackendCredentials)
    validating: BackendCredentials = field(default_factory=BackendCredentials)


class AdmissionChain:
    """Finds what is to decide about a request."""

    def __init__(
        self,
        caches: Caches,
        client: BackendClient,
        waiter: LoopWaiter,
        registry: CollectorRegistry,
        credentials: WebhookCredentials | None = None,
    ) -> None:
        credentials = credentials or WebhookCredentials()
        counts = WebhookMetrics(registry)
        self._policies = PolicyAdmission(caches, PolicyMetrics(registry))
        self._mutating = WebhookIndex(caches, MutatingWebhookConfiguration, credentials.mutating)
        self._validating = WebhookIndex(
            caches, ValidatingWebhookConfiguration, credentials.validating
        )
        self.mutating = MutatingWebhooks(caches, client, waiter, counts)
        self.validating = ValidatingWebhooks(caches, client, waiter, counts)

    def find(self, request: AdmissionRequest) -> RequestAdmission | None:
        """Returns what decides about a request, None if nothing does.

        Raises StoreUnavailable while policies and webhooks are not loaded.
        """
        sort = (request.resource, request.subresource, request.operation)
        mutating = self._mutating.find(*sort)
        validating = self._validating.find(*sort)
        policies = self._policies.find(*sort)
        if not mutating and not validating and not policies:
            return None
        return RequestAdmission(self, request, mutating, validating, policies)

    def check_policies(
        self, policies: Sequence[PreparedPolicy], write: WriteAttributes, requester: Requester
    ) -> None:
        """Raises PolicyDenied if a policy refuses the write."""
        if not policies:
            return
        # in a thread: expressions may take up to a second each
        check = partial(self._policies.check, policies, write, requester.caller, requester.remarks)
        greenlets.block(conversion.carry(check))


class RequestAdmission:
    """What decides about one request; a WriteAdmission of the store."""

    def __init__(
        self,
        chain: AdmissionChain,
        request: AdmissionRequest,
        mutating: Sequence[PreparedWebhook],
        validating: Sequence[PreparedWebhook],
        policies: Sequence[PreparedPolicy],
    ) -> None:
        self._chain = chain
        self._request = request
        self._mutating = mutating
        self._validating = validating
        self._policies = policies
        self._requester = Requester(request.caller, request.remarks, Deadline(_REQUEST_TIMEOUT))

    @property
    def mutates(self) -> bool:
        """Whether there are mutating webhooks."""
        return bool(self._mutating)

    def admit(
        self, new: KubeObject | None, old: KubeObject | None, readmit: Readmit
    ) -> KubeObject | None:
        """Returns the object as mutating webhooks have changed it."""
        if not self._mutating:
            return new
        write = self._write(new, old)
        return self._chain.mutating.admit(self._mutating, write, self._requester, readmit).new

    def validate(self, new: KubeObject | None, old: KubeObject | None) -> None:
        """Raises an ApiError if a policy or a validating webhook refuses the write."""
        self._validate(self._write(new, old))

    def decide(self, sent: Mapping[str, Any]) -> Mapping[str, Any]:
        """Returns the object of a request that is not stored, such as an Eviction, as webhooks
        have changed it.

        `sent` is the object with its kind. Raises the error of what refuses the request.
        """
        write = replace(self._write(None, None), sent=sent)
        if self._mutating:
            write = self._chain.mutating.admit(self._mutating, write, self._requester, _keep)
        self._validate(write)
        assert write.sent is not None
        return write.sent

    def _validate(self, write: WriteAttributes) -> None:
        self._chain.check_policies(self._policies, write, self._requester)
        if self._validating:
            self._chain.validating.validate(self._validating, write, self._requester)

    def _write(self, new: KubeObject | None, old: KubeObject | None) -> WriteAttributes:
        request = self._request
        resource, obj = request.resource, new if new is not None else old
        name = (obj.name if obj is not None else "") or request.name
        namespace = (obj.namespace if obj is not None else "") or request.namespace
        return WriteAttributes(
            operation=request.operation,
            resource=resource,
            subresource=request.subresource,
            namespace=name if resource.name == "namespaces" else namespace,
            name=name,
            new=new,
            old=old,
            user=request.caller.user,
            dry_run=request.dry_run,
            options=request.options,
        )


def _keep(obj: KubeObject) -> KubeObject:
    return obj
