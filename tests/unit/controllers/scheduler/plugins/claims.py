"""Pods with claims, and what a pass of the scheduler plans for them."""

from __future__ import annotations

from typing import Any

from kcm.api.core_v1 import PersistentVolumeClaim, Pod
from kcm.api.core_v1.affinity import (
    NodeSelector,
    NodeSelectorRequirement,
    NodeSelectorTerm,
)
from kcm.api.core_v1.persistent_volumes import VolumeNodeAffinity
from kcm.api.core_v1.volume_sources import PersistentVolumeClaimVolumeSource
from kcm.api.core_v1.volumes import Volume
from kcm.apimachinery.meta_v1 import KubeObject
from kcm.reconcile.plan import Plan
from kcm.testing.storage_builders import storage_class
from tests.unit.controllers.scheduler.world import HOST, controller, node, pod, run
from tests.unit.controllers.volume_builders import COMPLETED, a_claim

WAITS = "WaitForFirstConsumer"
LOCAL = storage_class("local", "kcm.dev/local", volume_binding_mode=WAITS)
MANUAL = storage_class("manual", "kubernetes.io/no-provisioner", volume_binding_mode=WAITS)
TWO = (node("n1"), node("n2"))


def user(*claims: str, name: str = "user", **fields: Any) -> Pod:
    volumes = [
        Volume(
            name=f"v{n}",
            persistent_volume_claim=PersistentVolumeClaimVolumeSource(claim_name=claim),
        )
        for n, claim in enumerate(claims or ("claim",))
    ]
    return pod(name, volumes=volumes, **fields)


def on(hostname: str, key: str = HOST) -> VolumeNodeAffinity:
    wanted = NodeSelectorRequirement(key=key, operator="In", values=[hostname])
    terms = [NodeSelectorTerm(match_expressions=[wanted])]
    return VolumeNodeAffinity(required=NodeSelector(node_selector_terms=terms))


def bound(**fields: Any) -> PersistentVolumeClaim:
    return a_claim("1Gi", "volume", "Bound", COMPLETED, **fields)


def waiting(storage: str = "local", **fields: Any) -> PersistentVolumeClaim:
    return a_claim(storage_class_name=storage, **fields)


def plan_of(*objects: KubeObject, memory: dict[str, str] | None = None) -> Plan:
    return run(controller(), *objects, memory=memory)


def failure(plan: Plan) -> str:
    (event,) = plan.events
    return event.message.split(" preemption:")[0]
