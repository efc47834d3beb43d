"""The admission plugins of the API server, which need to know who sends a write.

Their place among the others is in `kcm.store.admission.plugins`.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass, field

from prometheus_client import CollectorRegistry

from kcm.api.admissionregistration_v1 import (
    MutatingWebhookConfiguration,
    ValidatingWebhookConfiguration,
)
from kcm.apiserver.admission.certificates import (
    CertificateApproval,
    CertificateRequester,
    CertificateSigning,
    CertificateSubjectRestriction,
    ClusterTrustBundleAttest,
)
from kcm.apiserver.admission.claim_statuses import ClaimStatusAuthorization
from kcm.apiserver.admission.deciding import (
    MutatingAdmissionPolicy,
    MutatingAdmissionWebhook,
    ValidatingAdmissionPolicy,
    ValidatingAdmissionWebhook,
)
from kcm.apiserver.admission.node_restriction import NodeRestrictionPlugin
from kcm.apiserver.admission.node_taint import TaintNodesByCondition
from kcm.apiserver.admission.policies.admission import PolicyChecks
from kcm.apiserver.admission.policies.index import MutatingPolicyIndex, ValidatingPolicyIndex
from kcm.apiserver.admission.policies.metrics import MutationMetrics, PolicyMetrics
from kcm.apiserver.admission.policies.mutating import PolicyMutations
from kcm.apiserver.admission.policy_parameters import PolicyParameters
from kcm.apiserver.admission.role_escalation import RoleEscalation
from kcm.apiserver.admission.webhooks.index import WebhookIndex
from kcm.apiserver.admission.webhooks.metrics import WebhookMetrics
from kcm.apiserver.admission.webhooks.mutating import MutatingWebhooks
from kcm.apiserver.admission.webhooks.validating import ValidatingWebhooks
from kcm.apiserver.auth.node.restriction import NodeRestriction
from kcm.apiserver.cache.caches import Caches
from kcm.apiserver.egress.credentials import BackendCredentials
from kcm.apiserver.egress.posting import BackendClient
from kcm.apiserver.egress.waiting import LoopWaiter
from kcm.store import Store
from kcm.store.admission.plugin import Plugin


@dataclass(frozen=True)
class WebhookCredentials:
    """How the API server identifies itself to webhooks of each sort."""

    mutating: BackendCredentials = field(default_factory=BackendCredentials)
    validating: BackendCredentials = field(default_factory=BackendCredentials)


def build_request_plugins(store: Store, restriction: NodeRestriction | None) -> Iterator[Plugin]:
    """Yields the plugins whose rules are kcm's own. Without a restriction, nodes are users like
    others.
    """
    if restriction is not None:
        yield NodeRestrictionPlugin(restriction)
    yield TaintNodesByCondition()
    yield CertificateApproval()
    yield CertificateSigning()
    yield ClusterTrustBundleAttest()
    yield CertificateSubjectRestriction()
    yield ClaimStatusAuthorization()
    yield RoleEscalation()
    yield CertificateRequester()
    yield PolicyParameters(store)


def build_deciding_plugins(
    caches: Caches,
    client: BackendClient,
    waiter: LoopWaiter,
    registry: CollectorRegistry,
    credentials: WebhookCredentials | None = None,
) -> Iterator[Plugin]:
    """Yields the plugins that ask webhooks and policies. `registry` gets their metrics."""
    credentials, counts = credentials or WebhookCredentials(), WebhookMetrics(registry)
    yield MutatingAdmissionPolicy(
        MutatingPolicyIndex(caches),
        PolicyMutations(caches, MutationMetrics(registry)),
    )
    yield MutatingAdmissionWebhook(
        WebhookIndex(caches, MutatingWebhookConfiguration, credentials.mutating),
        MutatingWebhooks(caches, client, waiter, counts),
    )
    yield ValidatingAdmissionPolicy(
        ValidatingPolicyIndex(caches), PolicyChecks(caches, PolicyMetrics(registry))
    )
    yield ValidatingAdmissionWebhook(
        WebhookIndex(caches, ValidatingWebhookConfiguration, credentials.validating),
        ValidatingWebhooks(caches, client, waiter, counts),
    )
