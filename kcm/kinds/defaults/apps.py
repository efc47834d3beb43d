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
from kcm.kinds.defaults.defaulting import change_fields, fill_defaults, fill_each
from kcm.kinds.defaults.pods import pod_spec
from kcm.kinds.defaults.volume_claims import claim_template

_STEP = "25%"


def replica_set(replica_set: ReplicaSet) -> ReplicaSet:
    spec = replica_set.spec
    return change_fields(
        replica_set,
        spec=fill_defaults(change_fields(spec, template=_template(spec.template)), replicas=1),
    )


def replication_controller(controller: ReplicationController) -> ReplicationController:
    spec = fill_defaults(controller.spec, replicas=1)
    if spec.template is None:
        return change_fields(controller, spec=spec)
    labels = spec.template.metadata.labels
    spec = change_fields(spec, template=_template(spec.template), selector=spec.selector or labels)
    if labels and not controller.labels:
        controller = controller.with_metadata(labels=dict(labels))
    return change_fields(controller, spec=spec)


def deployment(deployment: Deployment) -> Deployment:
    spec = deployment.spec
    spec = fill_defaults(
        change_fields(spec, template=_template(spec.template), strategy=_strategy(spec.strategy)),
        replicas=1,
        revision_history_limit=10,
        progress_deadline_seconds=600,
    )
    return change_fields(deployment, spec=spec)


def _template(template: PodTemplateSpec) -> PodTemplateSpec:
    return change_fields(template, spec=pod_spec(template.spec))


def _strategy(strategy: DeploymentStrategy) -> DeploymentStrategy:
    strategy = fill_defaults(strategy, type="RollingUpdate")
    if strategy.type != "RollingUpdate":
        return strategy
    update = strategy.rolling_update or RollingUpdateDeployment()
    # An empty string is an invalid value here: only absent fields get a default.
    rolling = {"max_unavailable": update.max_unavailable, "max_surge": update.max_surge}
    missing = {name: _STEP for name, value in rolling.items() if value is None}
    return change_fields(strategy, rolling_update=change_fields(update, **missing))


def stateful_set(stateful_set: StatefulSet) -> StatefulSet:
    spec = stateful_set.spec
    policy = (
        spec.persistent_volume_claim_retention_policy
        or StatefulSetPersistentVolumeClaimRetentionPolicy()
    )
    spec = change_fields(
        spec,
        template=_template(spec.template),
        volume_claim_templates=fill_each(spec.volume_claim_templates, claim_template),
        update_strategy=_stateful_strategy(spec.update_strategy),
        persistent_volume_claim_retention_policy=fill_defaults(
            policy, when_deleted="Retain", when_scaled="Retain"
        ),
    )
    spec = fill_defaults(
        spec, replicas=1, revision_history_limit=10, pod_management_policy="OrderedReady"
    )
    return change_fields(stateful_set, spec=spec)


def _stateful_strategy(strategy: StatefulSetUpdateStrategy) -> StatefulSetUpdateStrategy:
    update = strategy.rolling_update
    if not strategy.type:
        # Only a strategy without a type gets a default rollingUpdate.
        strategy = strategy.replace(type="RollingUpdate")
        update = update or RollingUpdateStatefulSetStrategy()
    if strategy.type != "RollingUpdate" or update is None:
        return strategy
    return change_fields(strategy, rolling_update=fill_defaults(update, partition=0))


def daemon_set(daemon_set: DaemonSet) -> DaemonSet:
    spec = daemon_set.spec
    spec = change_fields(
        spec,
        template=_template(spec.template),
        update_strategy=_daemon_strategy(spec.update_strategy),
    )
    return change_fields(daemon_set, spec=fill_defaults(spec, revision_history_limit=10))


def _daemon_strategy(strategy: DaemonSetUpdateStrategy) -> DaemonSetUpdateStrategy:
    strategy = fill_defaults(strategy, type="RollingUpdate")
    if strategy.type != "RollingUpdate":
        return strategy
    update = strategy.rolling_update or RollingUpdateDaemonSet()
    rolling = {"max_unavailable": (update.max_unavailable, 1), "max_surge": (update.max_surge, 0)}
    missing = {name: default for name, (value, default) in rolling.items() if value is None}
    return change_fields(strategy, rolling_update=change_fields(update, **missing))
