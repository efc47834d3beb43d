"""The admission plugins that ask what users have set up: webhooks and policies.

A write that none of them is about costs four looks into tables.

Source: staging/src/k8s.io/apiserver/pkg/admission/plugin/{webhook,policy}, Kubernetes 1.33.
"""

from __future__ import annotations

from collections.abc import Sequence
from functools import partial
from typing import Generic

from kcm.api.admissionregistration_v1 import DELETE
from kcm.api.scheme import Resource
from kcm.apiextensions import conversion
from kcm.apiserver.admission.attributes import WriteAttributes
from kcm.apiserver.admission.index import PreparedT, RequestIndex
from kcm.apiserver.admission.policies.admission import PolicyChecks
from kcm.apiserver.admission.policies.index import (
    Mutating,
    MutatingPolicyIndex,
    Validating,
    ValidatingPolicyIndex,
)
from kcm.apiserver.admission.policies.mutating import PolicyMutations
from kcm.apiserver.admission.request import AdmissionRequest, request_of
from kcm.apiserver.admission.webhooks.index import PreparedWebhook, WebhookIndex
from kcm.apiserver.admission.webhooks.mutating import MutatingWebhooks
from kcm.apiserver.admission.webhooks.validating import ValidatingWebhooks
from kcm.redisio import greenlets
from kcm.store.admission.plugin import Plugin, Write


class _AskingPlugin(Plugin, Generic[PreparedT]):
    """Asks the webhooks or policies of an index about writes."""

    def __init__(self, index: RequestIndex[PreparedT]) -> None:
        self._index = index

    def decides(self, resource: Resource, subresource: str, operation: str) -> bool:
        """Raises: StoreUnavailable while webhooks or policies are not loaded."""
        return bool(self._index.find(resource, subresource, operation))

    def _find(self, write: Write) -> tuple[AdmissionRequest | None, Sequence[PreparedT]]:
        """Returns the request of a write, and the webhooks or policies that may match it."""
        request = request_of(write)
        if request is None:
            return None, ()
        return request, self._index.find(write.resource, write.subresource, write.operation)


class MutatingAdmissionWebhook(_AskingPlugin[PreparedWebhook]):
    """Passes writes to mutating webhooks, which may change their objects."""

    name = "MutatingAdmissionWebhook"

    def __init__(self, index: WebhookIndex, webhooks: MutatingWebhooks) -> None:
        super().__init__(index)
        self._webhooks = webhooks

    def admit(self, write: Write) -> Write:
        """Raises: as `MutatingWebhooks.admit`."""
        request, matching = self._find(write)
        if request is None or not matching:
            return write
        shown = attributes_of(write, request)
        before = (write.reinvocations or {}).get(self.name)
        changed, now = self._webhooks.admit(matching, shown, request, before)
        return write.after_asking(self.name, now, changed.new, changed.sent)


class MutatingAdmissionPolicy(_AskingPlugin[Mutating]):
    """Changes writes as policies say."""

    name = "MutatingAdmissionPolicy"

    def __init__(self, index: MutatingPolicyIndex, mutations: PolicyMutations) -> None:
        super().__init__(index)
        self._mutations = mutations

    def handles(self, resource: str, subresource: str, operation: str) -> bool:
        return operation != DELETE  # there is nothing to change

    def admit(self, write: Write) -> Write:
        """Raises: as `PolicyMutations.admit`."""
        request, matching = self._find(write)
        if request is None or not matching:
            return write
        before, shown = (write.reinvocations or {}).get(self.name), attributes_of(write, request)
        change = partial(self._mutations.admit, matching, shown, request, before)
        # In a thread: expressions may take up to a second each.
        changed, now = greenlets.block(conversion.carry(change))
        return write.after_asking(self.name, now, changed.new, changed.sent)


class ValidatingAdmissionPolicy(_AskingPlugin[Validating]):
    """Checks writes against policies."""

    name = "ValidatingAdmissionPolicy"

    def __init__(self, index: ValidatingPolicyIndex, checks: PolicyChecks) -> None:
        super().__init__(index)
        self._checks = checks

    def validate(self, write: Write) -> None:
        """Raises: PolicyDenied, StoreUnavailable."""
        request, matching = self._find(write)
        if request is None or not matching:
            return
        shown = attributes_of(write, request)
        check = partial(self._checks.check, matching, shown, request.caller, request.remarks)
        # In a thread: expressions may take up to a second each.
        greenlets.block(conversion.carry(check))


class ValidatingAdmissionWebhook(_AskingPlugin[PreparedWebhook]):
    """Passes writes to validating webhooks, which may refuse them."""

    name = "ValidatingAdmissionWebhook"

    def __init__(self, index: WebhookIndex, webhooks: ValidatingWebhooks) -> None:
        super().__init__(index)
        self._webhooks = webhooks

    def validate(self, write: Write) -> None:
        """Raises: as `ValidatingWebhooks.validate`."""
        request, matching = self._find(write)
        if request is not None and matching:
            self._webhooks.validate(matching, attributes_of(write, request), request)


def attributes_of(write: Write, request: AdmissionRequest) -> WriteAttributes:
    """Returns what webhooks and policies may know of a write."""
    resource, obj = write.resource, write.new if write.new is not None else write.old
    name = (obj.name if obj is not None else "") or request.name
    namespace = (obj.namespace if obj is not None else "") or request.namespace
    return WriteAttributes(
        operation=write.operation,
        resource=resource,
        subresource=write.subresource,
        namespace=name if resource.name == "namespaces" else namespace,
        name=name,
        new=write.new,
        old=write.old,
        user=request.caller.user,
        dry_run=request.dry_run,
        options=request.options,
        sent=write.sent,
    )
