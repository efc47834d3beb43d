"""What the controller keeps pods for: ReplicaSets and ReplicationControllers.

Source: pkg/controller/replication/conversion.go, Kubernetes 1.33, which converts one into the
other. Here the code asks each for what it needs.
"""

from __future__ import annotations

from kcm.api.apps_v1 import ReplicaSet, ReplicaSetCondition
from kcm.api.core_v1 import PodTemplateSpec, ReplicationController
from kcm.api.core_v1.replication_controllers import ReplicationControllerCondition

ReplicaOwner = ReplicaSet | ReplicationController


def template_of(owner: ReplicaOwner) -> PodTemplateSpec:
    """Returns the template of its pods."""
    return owner.spec.template or PodTemplateSpec()


def condition_type(
    owner: ReplicaOwner,
) -> type[ReplicaSetCondition] | type[ReplicationControllerCondition]:
    """Returns the model of its conditions."""
    return ReplicaSetCondition if isinstance(owner, ReplicaSet) else ReplicationControllerCondition
