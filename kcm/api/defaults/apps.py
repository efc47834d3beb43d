"""Defaults of ReplicaSets and Deployments.

Source: pkg/apis/apps/v1/defaults.go, Kubernetes 1.33.
"""

from __future__ import annotations

from kcm.api.apps_v1 import Deployment, DeploymentStrategy, ReplicaSet, RollingUpdateDeployment
from kcm.api.core_v1 import PodTemplateSpec
from kcm.api.defaults.filling import changed, filled
from kcm.api.defaults.pods import pod_spec

_STEP = "25%"


def replica_set(replica_set: ReplicaSet) -> ReplicaSet:
    spec = replica_set.spec
    return changed(
        replica_set, spec=filled(changed(spec, template=_template(spec.template)), replicas=1)
    )


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
