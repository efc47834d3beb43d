"""What ReplicaSets and ReplicationControllers have in common for their controller.

Source: pkg/controller/replication/conversion.go, Kubernetes 1.33. Upstream converts one kind into
the other. Here the controller handles both.
"""

from __future__ import annotations

from kcm.api.apps_v1 import ReplicaSet, ReplicaSetCondition
from kcm.api.core_v1 import PodTemplateSpec, ReplicationController
from kcm.api.core_v1.pods import ReplicationControllerCondition

ReplicaOwner = ReplicaSet | ReplicationController


def template_of(owner: ReplicaOwner) -> PodTemplateSpec:
    """Returns the owner's pod template, an empty one if it has none."""
    return owner.spec.template or PodTemplateSpec()


def condition_type(
    owner: ReplicaOwner,
) -> type[ReplicaSetCondition] | type[ReplicationControllerCondition]:
    """Returns the model of the owner's conditions."""
    return ReplicaSetCondition if isinstance(owner, ReplicaSet) else ReplicationControllerCondition
