"""flowcontrol.apiserver.k8s.io/v1: FlowSchema and PriorityLevelConfiguration.

Source: staging/src/k8s.io/api/flowcontrol/v1/types.go, Kubernetes 1.33.
"""

from __future__ import annotations

from typing import Annotated

from pydantic import Field

from kcm.apimachinery.base import Bool, Int32, MergeKey, MergeSet, Model
from kcm.apimachinery.meta_v1 import KubeObject, Time

Names = Annotated[list[str], MergeSet(patches=False)]


class FlowDistinguisherMethod(Model):
    """What tells the flows of a FlowSchema apart."""

    type: str = ""


class PriorityLevelConfigurationReference(Model):
    """The priority level of the requests that a FlowSchema matches."""

    name: str = ""


class UserSubject(Model):
    """A user."""

    name: str = ""


class GroupSubject(Model):
    """A group of users."""

    name: str = ""


class ServiceAccountSubject(Model):
    """A service account."""

    namespace: str = ""
    name: str = ""


class Subject(Model):
    """Whoever sends a request: a user, a group or a service account."""

    kind: str = ""
    user: UserSubject | None = None
    group: GroupSubject | None = None
    service_account: ServiceAccountSubject | None = None


class ResourcePolicyRule(Model):
    """Requests for resources."""

    verbs: Names = Field(default_factory=list)
    api_groups: Names = Field(default_factory=list, alias="apiGroups")
    resources: Names = Field(default_factory=list)
    cluster_scope: Bool | None = None
    namespaces: Annotated[list[str] | None, MergeSet(patches=False)] = None


class NonResourcePolicyRule(Model):
    """Requests for paths that are no resources."""

    verbs: Names = Field(default_factory=list)
    non_resource_urls: Names = Field(default_factory=list, alias="nonResourceURLs")


class PolicyRulesWithSubjects(Model):
    """Requests of certain subjects."""

    subjects: list[Subject] = Field(default_factory=list)
    resource_rules: list[ResourcePolicyRule] | None = None
    non_resource_rules: list[NonResourcePolicyRule] | None = None


class FlowSchemaSpec(Model):
    """Which requests a FlowSchema matches, and their priority level."""

    priority_level_configuration: PriorityLevelConfigurationReference = Field(
        default_factory=PriorityLevelConfigurationReference
    )
    matching_precedence: Int32 | None = None
    distinguisher_method: FlowDistinguisherMethod | None = None
    rules: list[PolicyRulesWithSubjects] | None = None


class FlowSchemaCondition(Model):
    """One aspect of a FlowSchema's state."""

    type: str | None = None
    status: str | None = None
    last_transition_time: Time | None = None
    reason: str | None = None
    message: str | None = None


class FlowSchemaStatus(Model):
    """The last observed state of a FlowSchema."""

    conditions: Annotated[list[FlowSchemaCondition] | None, MergeKey("type")] = None


class FlowSchema(KubeObject):
    """Gives requests a priority level."""

    api_version: str = "flowcontrol.apiserver.k8s.io/v1"
    kind: str = "FlowSchema"
    spec: FlowSchemaSpec = Field(default_factory=FlowSchemaSpec)
    status: FlowSchemaStatus = Field(default_factory=FlowSchemaStatus)


class QueuingConfiguration(Model):
    """The queues of a priority level."""

    queues: Int32 | None = None
    hand_size: Int32 | None = None
    queue_length_limit: Int32 | None = None


class LimitResponse(Model):
    """What becomes of requests that cannot be served at once."""

    type: str = ""
    queuing: QueuingConfiguration | None = None


class LimitedPriorityLevelConfiguration(Model):
    """The limits of a priority level."""

    nominal_concurrency_shares: Int32 | None = None
    limit_response: LimitResponse = Field(default_factory=LimitResponse)
    lendable_percent: Int32 | None = None
    borrowing_limit_percent: Int32 | None = None


class ExemptPriorityLevelConfiguration(Model):
    """What a priority level without limits takes from the others."""

    nominal_concurrency_shares: Int32 | None = None
    lendable_percent: Int32 | None = None


class PriorityLevelConfigurationSpec(Model):
    """Whether and how the requests of a priority level are limited."""

    type: str = ""
    limited: LimitedPriorityLevelConfiguration | None = None
    exempt: ExemptPriorityLevelConfiguration | None = None


class PriorityLevelConfigurationCondition(Model):
    """One aspect of a priority level's state."""

    type: str | None = None
    status: str | None = None
    last_transition_time: Time | None = None
    reason: str | None = None
    message: str | None = None


class PriorityLevelConfigurationStatus(Model):
    """The last observed state of a priority level."""

    conditions: Annotated[list[PriorityLevelConfigurationCondition] | None, MergeKey("type")] = None


class PriorityLevelConfiguration(KubeObject):
    """The limits of a priority level."""

    api_version: str = "flowcontrol.apiserver.k8s.io/v1"
    kind: str = "PriorityLevelConfiguration"
    spec: PriorityLevelConfigurationSpec = Field(default_factory=PriorityLevelConfigurationSpec)
    status: PriorityLevelConfigurationStatus = Field(
        default_factory=PriorityLevelConfigurationStatus
    )
