"""What the controller keeps the pods of: ReplicaSets, and ReplicationControllers alike.

Source: pkg/controller/replication/conversion.go, Kubernetes 1.33, which makes one look like the
other; here the code asks for what it needs.
"""

from __future__ import annotations

from kcm.api.apps_v1 import ReplicaSet, ReplicaSetCondition
from kcm.api.core_v1 import PodTemplateSpec, ReplicationController
from kcm.api.core_v1.replication_controllers import ReplicationControllerCondition

ReplicaOwner = ReplicaSet | ReplicationController


def template_of(owner: ReplicaOwner) -> PodTemplateSpec:
    """What its pods are made from."""
    return owner.spec.template or PodTemplateSpec()


def condition_type(
    owner: ReplicaOwner,
) -> type[ReplicaSetCondition] | type[ReplicationControllerCondition]:
    """The model of its conditions."""
    return ReplicaSetCondition if isinstance(owner, ReplicaSet) else ReplicationControllerCondition
