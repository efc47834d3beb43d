"""Scenarios whose final state does not depend on how the control plane is run, and that state.

A scenario is manifests, steps after them, and what is awaited at the end.
"""

from __future__ import annotations

import json
import re
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field
from functools import partial
from typing import Any

from kcm.testing import ControlPlane

Json = dict[str, Any]
Step = Callable[[ControlPlane, str], object]

# What the control plane draws, measures or stamps.
_DRAWN = {
    "uid", "resourceVersion", "managedFields", "selfLink", "generateName", "nodeName", "hostIP",
    "hostIPs", "podIP", "podIPs", "clusterIP", "clusterIPs", "containerID", "imageID", "nodePort",
    "volumeName", "zone", "hints", "ip", "healthCheckNodePort", "ipFamilies", "hostname",
    "volume.kubernetes.io/selected-node", "topology.kubernetes.io/zone",
}  # fmt: skip
_TOKEN_VOLUME = re.compile(r"kube-api-access-[a-z0-9]{5}")
_STAMP = re.compile(r"(time|timestamp|since|At)$", re.IGNORECASE)
KINDS = (
    "configmaps", "controllerrevisions", "cronjobs", "daemonsets", "deployments", "endpoints",
    "endpointslices", "horizontalpodautoscalers", "jobs", "limitranges", "persistentvolumeclaims",
    "poddisruptionbudgets", "pods", "replicasets", "replicationcontrollers", "resourcequotas",
    "serviceaccounts", "services", "statefulsets",
)  # fmt: skip


@dataclass(frozen=True)
class Scenario:
    """Objects that are applied together, further steps, and when all is done."""

    name: str
    manifests: Sequence[Json]
    done: Step
    steps: Sequence[tuple[Step, Step]] = ()  # what is awaited before, and what is done then
    kinds: tuple[str, ...] = field(default=KINDS)

    def run(self, plane: ControlPlane) -> list[str]:
        """Returns the objects of the scenario's namespace at its end, each as sorted JSON."""
        namespace = self.name
        plane.apply({"apiVersion": "v1", "kind": "Namespace", "metadata": {"name": namespace}})
        plane.eventually(lambda: plane.get("configmap/kube-root-ca.crt", namespace))
        plane.eventually(lambda: plane.get("serviceaccount/default", namespace))
        for manifest in self.manifests:
            plane.apply(manifest, namespace)
        for ready, act in self.steps:
            plane.eventually(partial(ready, plane, namespace), what=f"{self.name}, a step")
            act(plane, namespace)
        plane.eventually(lambda: self.done(plane, namespace), within="60s", what=self.name)
        plane.settle()
        return self._read(plane, namespace)

    def _read(self, plane: ControlPlane, namespace: str) -> list[str]:
        objects = [one for kind in self.kinds for one in plane.list(kind, namespace)]
        drawn: dict[str, str] = {}
        for one in objects:
            meta = one["metadata"]
            drawn[meta["uid"]] = "(uid)"
            if "generateName" in meta:
                drawn[meta["name"]] = f"{meta['generateName']}(drawn)"
            if "endpoints" in one:  # how often a slice is written is a matter of time
                meta.pop("generation", None)
        return sorted(_dump(_without_drawn(one, drawn)) for one in objects)


def _without_drawn(value: Any, drawn: Mapping[str, str]) -> Any:
    """Returns JSON without what is drawn, with lists in an order of their own."""
    if isinstance(value, dict):
        if value.get("name") == "kube-root-ca.crt" or "ca.crt" in value:
            value = {**value, "ca.crt": "(certificates)"}
        kept = {name: v for name, v in value.items() if name not in _DRAWN}
        return {n: _without_drawn(v, drawn) for n, v in kept.items() if not _STAMP.search(n)}
    if isinstance(value, list):
        return sorted((_without_drawn(one, drawn) for one in value), key=_dump)
    if isinstance(value, str):
        for name, placeholder in drawn.items():
            value = value.replace(name, placeholder)
        return _TOKEN_VOLUME.sub("kube-api-access-(drawn)", value)
    return value


def _dump(value: Any) -> str:
    return json.dumps(value, sort_keys=True)
