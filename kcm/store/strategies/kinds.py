"""The strategies of the kinds that have rules of their own.

A new strategy needs a class here, or in a module beside this one, and a line in `_STRATEGIES`.
Source: pkg/registry/core/{pod,namespace,persistentvolumeclaim,replicationcontroller,resourcequota,
limitrange,serviceaccount}/strategy.go,
pkg/registry/apps/{replicaset,deployment,daemonset}/strategy.go,
pkg/registry/batch/job/strategy.go,
pkg/registry/autoscaling/horizontalpodautoscaler/strategy.go and
staging/src/k8s.io/apiextensions-apiserver/pkg/registry/customresourcedefinition/strategy.go,
Kubernetes 1.33.
"""

from __future__ import annotations

from datetime import datetime
from typing import Any

from kcm.api import autoscaling_v1
from kcm.api.apiextensions_v1 import CustomResourceDefinition
from kcm.api.apiregistration_v1 import APIService, local_condition, with_condition
from kcm.api.apps_v1 import DaemonSet, Deployment
from kcm.api.certificates_v1 import CertificateSigningRequest
from kcm.api.core_v1 import (
    LimitRange,
    Namespace,
    Node,
    PersistentVolume,
    PersistentVolumeClaim,
    PersistentVolumeClaimStatus,
    Pod,
    PodCondition,
    PodStatus,
    ReplicationController,
    ServiceAccount,
)
from kcm.api.core_v1.persistent_volumes import PersistentVolumeStatus
from kcm.api.custom.kinds import CustomObject, CustomResource
from kcm.api.pods.app_armor import with_profiles
from kcm.api.pods.qos import qos_class
from kcm.api.scheme import Resource
from kcm.apiextensions import conditions
from kcm.apimachinery.meta_v1 import KubeObject
from kcm.store.strategies.base import Strategy
from kcm.store.strategies.counted import (
    CSIDriverStrategy,
    EndpointSliceStrategy,
    PodTemplateStrategy,
    PriorityClassStrategy,
    WebhooksStrategy,
)
from kcm.store.strategies.devices import ResourceClaimStrategy, ResourceSliceStrategy
from kcm.store.strategies.jobs import JobStrategy
from kcm.store.strategies.pod_selectors import with_label_keys
from kcm.store.strategies.services import ServiceStrategy
from kcm.store.strategies.volume_sources import complete_sources

# --- The strategy of APIServices.
#
# Source: staging/src/k8s.io/kube-aggregator/pkg/registry/apiservice/strategy.go, Kubernetes 1.33.


class APIServiceStrategy(Strategy[APIService]):
    """An API that the server itself serves is available at once."""

    def for_create(self, obj: APIService) -> APIService:
        created = super().for_create(obj)
        if created.spec.service is not None:
            return created
        created_at = created.metadata.creation_timestamp
        assert created_at is not None  # rules.complete_new has set it
        return with_condition(created, local_condition(created_at))


GATED = PodCondition(
    type="PodScheduled",
    status="False",
    reason="SchedulingGated",
    message="Scheduling is blocked due to non-empty scheduling gates",
)


class PodStrategy(Strategy[Pod]):
    """New pods are Pending. A pod on a node has a grace period when it is deleted.

    The class of a pod's quality of service is computed once, when it is created.
    """

    def for_create(self, obj: Pod) -> Pod:
        status = PodStatus(phase="Pending")
        if obj.spec.scheduling_gates:
            gated = GATED.replace(last_transition_time=obj.metadata.creation_timestamp)
            status = status.replace(conditions=[gated])
        return with_label_keys(with_profiles(obj)).with_status(status)

    def complete(self, obj: Pod) -> Pod:
        return obj.with_status(obj.status.replace(qos_class=qos_class(obj)))

    def for_status(self, new: Pod, old: Pod) -> Pod:
        status = new.status
        if not status.qos_class:  # kubelets may leave it out
            status = status.replace(qos_class=old.status.qos_class)
        return old.with_status(_keep_generations(status, old.status))

    # As upstream, the last state of a pod that is removed at once says so.
    marks_at_once = True

    def grace_period(self, obj: Pod, requested: int | None) -> int:
        if not obj.spec.node_name:
            return 0
        if obj.status.phase in ("Failed", "Succeeded"):
            return 0
        grace = obj.spec.termination_grace_period_seconds if requested is None else requested
        if grace is None:
            return 30
        return 1 if grace < 0 else grace


class ReplicationControllerStrategy(Strategy[ReplicationController]):
    """A deletion without a propagation policy orphans the pods, as in v1 upstream."""

    orphans_by_default = True


class KeepStatus(Strategy[Node]):
    """Nodes are created with the status that their creator sends."""

    def for_create(self, obj: Node) -> Node:
        return obj


class NamespaceStrategy(Strategy[Namespace]):
    """A namespace gets the phase Terminating when its deletion begins, and has the finalizer
    `kubernetes` in its spec, which only the subresource `finalize` changes.
    """

    def for_create(self, obj: Namespace) -> Namespace:
        created, finalizers = super().for_create(obj), obj.spec.finalizers or []
        if "kubernetes" in finalizers:
            return created
        return created.with_spec(obj.spec.replace(finalizers=[*finalizers, "kubernetes"]))

    def for_update(self, new: Namespace, old: Namespace) -> Namespace:
        return new.with_spec(new.spec.replace(finalizers=old.spec.finalizers))

    def for_delete(self, obj: Namespace, now: datetime) -> Namespace:
        return obj.with_status(obj.status.replace(phase="Terminating"))


def _keep_generations(new: PodStatus, old: PodStatus) -> PodStatus:
    """Returns the status of a pod with the observed generations of the old one where it has none.

    A type of condition may be there several times. Source: preserveOldObservedGeneration in
    pkg/registry/core/pod/strategy.go, Kubernetes 1.36.
    """
    before: dict[str, list[int | None]] = {}
    for condition in old.conditions or ():
        before.setdefault(condition.type, []).append(condition.observed_generation)
    conditions = []
    for condition in new.conditions or ():
        generations = before.get(condition.type)
        generation = generations.pop(0) if generations else None
        lacks = generation and not condition.observed_generation
        conditions.append(condition.replace(observed_generation=generation) if lacks else condition)
    if old.observed_generation and not new.observed_generation:
        new = new.replace(observed_generation=old.observed_generation)
    return new if conditions == (new.conditions or []) else new.replace(conditions=conditions)


class DeploymentWriteStrategy(Strategy[Deployment]):
    """A changed annotation increases a Deployment's generation, since rollouts copy annotations.

    A status update writes annotations as well, as the controller sets that of the revision, and
    does not increase the generation.
    """

    def for_status(self, new: Deployment, old: Deployment) -> Deployment:
        return super().for_status(new, old).with_metadata(annotations=new.metadata.annotations)

    def is_revised(self, new: Deployment, old: Deployment) -> bool:
        return super().is_revised(new, old) or dict(new.annotations) != dict(old.annotations)


TEMPLATE_GENERATION = "deprecated.daemonset.template.generation"


class DaemonSetStrategy(Strategy[DaemonSet]):
    """An annotation of a DaemonSet counts the changes of its template; users cannot set it."""

    def for_create(self, obj: DaemonSet) -> DaemonSet:
        return _count_generation(super().for_create(obj), 1)

    def for_update(self, new: DaemonSet, old: DaemonSet) -> DaemonSet:
        text = old.annotations.get(TEMPLATE_GENERATION, "")
        before = int(text) if text.isascii() and text.isdecimal() else 0
        return _count_generation(new, before + (new.spec.template != old.spec.template))


def _count_generation(obj: DaemonSet, count: int) -> DaemonSet:
    if not count or obj.annotations.get(TEMPLATE_GENERATION) == str(count):
        return obj
    return obj.with_metadata(annotations={**obj.annotations, TEMPLATE_GENERATION: str(count)})


class ClaimStrategy(Strategy[PersistentVolumeClaim]):
    """New claims are Pending until they are bound to a volume.

    Both of a claim's fields for what its volume is filled from are set if one is.
    """

    def for_create(self, obj: PersistentVolumeClaim) -> PersistentVolumeClaim:
        claim = super().for_create(obj.with_spec(complete_sources(obj.spec, None)))
        return claim.with_status(PersistentVolumeClaimStatus(phase="Pending"))

    def for_update(
        self, new: PersistentVolumeClaim, old: PersistentVolumeClaim
    ) -> PersistentVolumeClaim:
        return new.with_spec(complete_sources(new.spec, old.spec))


class VolumeStrategy(Strategy[PersistentVolume]):
    """New volumes are Pending until a controller handles them."""

    def for_create(self, obj: PersistentVolume) -> PersistentVolume:
        volume = super().for_create(obj)
        moment = volume.metadata.creation_timestamp
        status = PersistentVolumeStatus(phase="Pending", last_phase_transition_time=moment)
        return volume.with_status(status)


class LimitRangeStrategy(Strategy[LimitRange]):
    """A limit range that was sent without a name is named by its uid."""

    def complete(self, obj: LimitRange) -> LimitRange:
        return obj if obj.name else obj.with_metadata(name=obj.uid)


class ServiceAccountStrategy(Strategy[ServiceAccount]):
    """Only the names of a service account's secrets are kept."""

    def for_create(self, obj: ServiceAccount) -> ServiceAccount:
        if not obj.secrets:
            return obj
        return obj.replace(secrets=[type(ref)(name=ref.name) for ref in obj.secrets])

    def for_update(self, new: ServiceAccount, old: ServiceAccount) -> ServiceAccount:
        return self.for_create(new)


class DefinitionStrategy(Strategy[CustomResourceDefinition]):
    """The status of a definition collects all versions in which objects may have been stored."""

    def for_create(self, obj: CustomResourceDefinition) -> CustomResourceDefinition:
        return self.for_update(super().for_create(obj), obj)

    def for_update(
        self, new: CustomResourceDefinition, old: CustomResourceDefinition
    ) -> CustomResourceDefinition:
        stored = list(new.status.stored_versions or ())
        missing = [v.name for v in new.spec.versions if v.storage and v.name not in stored]
        if not missing:
            return new
        return new.with_status(new.status.replace(stored_versions=stored + missing))

    def for_delete(self, obj: CustomResourceDefinition, now: datetime) -> CustomResourceDefinition:
        return conditions.begin_termination(obj, now)


class SigningRequestStrategy(Strategy[CertificateSigningRequest]):
    """An update of a signing request changes only its metadata. Subresources change the status."""

    def for_update(
        self, new: CertificateSigningRequest, old: CertificateSigningRequest
    ) -> CertificateSigningRequest:
        return new.with_spec(old.spec).with_status(old.status)


class CustomStrategy(Strategy[CustomObject]):
    """The strategy of custom kinds with a status subresource.

    All changes but those of metadata and status increase the generation.
    """

    def for_create(self, obj: CustomObject) -> CustomObject:
        return obj.with_status(None)

    def is_revised(self, new: CustomObject, old: CustomObject) -> bool:
        return new.content != old.content


class StatuslessStrategy(CustomStrategy):
    """The strategy of custom kinds without a status subresource: status is an ordinary field."""

    def for_create(self, obj: CustomObject) -> CustomObject:
        return obj


class AutoscalerStrategy(Strategy[KubeObject]):
    """In autoscaling/v1, part of an autoscaler's status is in annotations.

    An update of the object keeps these annotations, an update of the status changes them.
    """

    def for_create(self, obj: KubeObject) -> KubeObject:
        return _with_status_of(super().for_create(obj), None)

    def for_update(self, new: KubeObject, old: KubeObject) -> KubeObject:
        return _with_status_of(new, old)

    def for_status(self, new: KubeObject, old: KubeObject) -> KubeObject:
        return _with_status_of(super().for_status(new, old), new)


def _with_status_of(obj: KubeObject, other: KubeObject | None) -> KubeObject:
    """Returns the autoscaler with the status annotations of another, with none for None."""
    if not isinstance(obj, autoscaling_v1.HorizontalPodAutoscaler):
        return obj
    names = autoscaling_v1.OF_STATUS
    kept = {name: text for name, text in obj.annotations.items() if name not in names}
    if other is not None:
        kept |= {name: text for name, text in other.annotations.items() if name in names}
    return obj if kept == dict(obj.annotations) else obj.with_metadata(annotations=kept or None)


# By whether the kind has a status subresource.
_CUSTOM: dict[bool, Strategy[Any]] = {True: CustomStrategy(), False: StatuslessStrategy()}
_STRATEGIES: dict[str, Strategy[Any]] = {
    "pods": PodStrategy(),
    "namespaces": NamespaceStrategy(),
    "nodes": KeepStatus(),
    "limitranges": LimitRangeStrategy(),
    "replicationcontrollers": ReplicationControllerStrategy(),
    "services": ServiceStrategy(),
    "serviceaccounts": ServiceAccountStrategy(),
    "endpointslices.discovery.k8s.io": EndpointSliceStrategy(),
    "persistentvolumeclaims": ClaimStrategy(),
    "persistentvolumes": VolumeStrategy(),
    "podtemplates": PodTemplateStrategy(),
    "csidrivers.storage.k8s.io": CSIDriverStrategy(),
    "daemonsets.apps": DaemonSetStrategy(),
    "deployments.apps": DeploymentWriteStrategy(),
    "horizontalpodautoscalers.autoscaling": AutoscalerStrategy(),
    "jobs.batch": JobStrategy(),
    "priorityclasses.scheduling.k8s.io": PriorityClassStrategy(),
    "validatingwebhookconfigurations.admissionregistration.k8s.io": WebhooksStrategy(),
    "mutatingwebhookconfigurations.admissionregistration.k8s.io": WebhooksStrategy(),
    "resourceclaims.resource.k8s.io": ResourceClaimStrategy(),
    "resourceslices.resource.k8s.io": ResourceSliceStrategy(),
    "certificatesigningrequests.certificates.k8s.io": SigningRequestStrategy(),
    "customresourcedefinitions.apiextensions.k8s.io": DefinitionStrategy(),
    "apiservices.apiregistration.k8s.io": APIServiceStrategy(),
}
_DEFAULT = Strategy[Any]()


def strategy_of(resource: Resource) -> Strategy[KubeObject]:
    """Returns the strategy of a resource."""
    if isinstance(resource, CustomResource):
        return _CUSTOM[resource.has_status]
    return _STRATEGIES.get(resource.name, _DEFAULT)
