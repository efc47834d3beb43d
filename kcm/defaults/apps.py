"""Defaults of ReplicaSets, ReplicationControllers, Deployments, StatefulSets and DaemonSets.

Source: pkg/apis/apps/v1/defaults.go and pkg/apis/core/v1/defaults.go, Kubernetes 1.33.
"""

from __future__ import annotations

from kcm.api.apps_v1 import (
    DaemonSet,
    DaemonSetUpdateStrategy,
    Deployment,
    DeploymentStrategy,
    ReplicaSet,
    RollingUpdateDaemonSet,
    RollingUpdateDeployment,
    RollingUpdateStatefulSetStrategy,
    StatefulSet,
    StatefulSetPersistentVolumeClaimRetentionPolicy,
    StatefulSetUpdateStrategy,
)
from kcm.api.core_v1 import PodTemplateSpec, ReplicationController
from kcm.defaults.filling import changed, each, filled
from kcm.defaults.pods import pod_spec
from kcm.defaults.volume_claims import claim_template

_STEP = "25%"


def replica_set(replica_set: ReplicaSet) -> ReplicaSet:
    spec = replica_set.spec
    return changed(
        replica_set, spec=filled(changed(spec, template=_template(spec.template)), replicas=1)
    )


def replication_controller(found: ReplicationController) -> ReplicationController:
    spec = filled(found.spec, replicas=1)
    if spec.template is None:
        return changed(found, spec=spec)
    labels = spec.template.metadata.labels
    spec = changed(spec, template=_template(spec.template), selector=spec.selector or labels)
    if labels and not found.labels:
        found = found.with_metadata(labels=dict(labels))
    return changed(found, spec=spec)


def deployment(deployment: Deployment) -> Deployment:
    spec = deployment.spec
    spec = filled(
        changed(spec, template=_template(spec.template), strategy=_strategy(spec.strategy)),
        replicas=1,
        revision_history_limit=10,
        progress_deadline_seconds=600,
    )
    return changed(deployment, spec=spec)


def _template(template: PodTemplateSpec) -> PodTemplateSpec:
    return changed(template, spec=pod_spec(template.spec))


def _strategy(strategy: DeploymentStrategy) -> DeploymentStrategy:
    strategy = filled(strategy, type="RollingUpdate")
    if strategy.type != "RollingUpdate":
        return strategy
    update = strategy.rolling_update or RollingUpdateDeployment()
    # An empty string is a value here, if a wrong one: only what is absent is filled in.
    found = {"max_unavailable": update.max_unavailable, "max_surge": update.max_surge}
    missing = {name: _STEP for name, value in found.items() if value is None}
    return changed(strategy, rolling_update=changed(update, **missing))


def stateful_set(stateful_set: StatefulSet) -> StatefulSet:
    spec = stateful_set.spec
    policy = (
        spec.persistent_volume_claim_retention_policy
        or StatefulSetPersistentVolumeClaimRetentionPolicy()
    )
    spec = changed(
        spec,
        template=_template(spec.template),
        volume_claim_templates=each(spec.volume_claim_templates, claim_template),
        update_strategy=_stateful_strategy(spec.update_strategy),
        persistent_volume_claim_retention_policy=filled(
            policy, when_deleted="Retain", when_scaled="Retain"
        ),
    )
    spec = filled(spec, replicas=1, revision_history_limit=10, pod_management_policy="OrderedReady")
    return changed(stateful_set, spec=spec)


def _stateful_strategy(strategy: StatefulSetUpdateStrategy) -> StatefulSetUpdateStrategy:
    update = strategy.rolling_update
    if not strategy.type:
        # Only who leaves out the type gets a rolling update filled in.
        strategy = strategy.replace(type="RollingUpdate")
        update = update or RollingUpdateStatefulSetStrategy()
    if strategy.type != "RollingUpdate" or update is None:
        return strategy
    return changed(strategy, rolling_update=filled(update, partition=0))


def daemon_set(daemon_set: DaemonSet) -> DaemonSet:
    spec = daemon_set.spec
    spec = changed(
        spec,
        template=_template(spec.template),
        update_strategy=_daemon_strategy(spec.update_strategy),
    )
    return changed(daemon_set, spec=filled(spec, revision_history_limit=10))


def _daemon_strategy(strategy: DaemonSetUpdateStrategy) -> DaemonSetUpdateStrategy:
    strategy = filled(strategy, type="RollingUpdate")
    if strategy.type != "RollingUpdate":
        return strategy
    update = strategy.rolling_update or RollingUpdateDaemonSet()
    found = {"max_unavailable": (update.max_unavailable, 1), "max_surge": (update.max_surge, 0)}
    missing = {name: default for name, (value, default) in found.items() if value is None}
    return changed(strategy, rolling_update=changed(update, **missing))
