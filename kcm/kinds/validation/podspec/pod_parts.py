"""Validation of changes to a pod's ephemeral containers, and to its containers' resources.

Source: ValidatePodEphemeralContainersUpdate, ValidatePodResize and validateContainerResize in
pkg/apis/core/validation/validation.go, Kubernetes 1.33.
"""

from __future__ import annotations

from collections.abc import Sequence

from kcm.api.core_v1 import Container, Pod, PodSpec, ResourceRequirements
from kcm.api.pods.qos import compute_qos_class, qos_class
from kcm.apimachinery.field_errors import ROOT, Faults, forbidden, invalid
from kcm.apimachinery.quantity import ResourceList
from kcm.kinds.validation import meta
from kcm.kinds.validation.podspec.pods import MIRROR, mirror_annotation, pod_metadata_and_spec

_EPHEMERAL = "spec.ephemeralContainers"
_RESIZABLE = ("cpu", "memory")
_NO_OTHERS = "only cpu and memory resources are mutable"


def update_ephemeral_containers(new: Pod, old: Pod) -> Faults:
    """Checks a change of the ephemeral containers: existing ones stay as they are."""
    if MIRROR in old.annotations:
        return [forbidden(ROOT, "static pods do not support ephemeral containers")]
    faults = meta.metadata_update(new, old) + pod_metadata_and_spec(new)
    faults += mirror_annotation(new, old)
    after = {container.name: container for container in new.spec.ephemeral_containers or ()}
    for container in old.spec.ephemeral_containers or ():
        if container.name not in after:
            detail = f'existing ephemeral containers "{container.name}" may not be removed\n'
            faults.append(forbidden(_EPHEMERAL, detail))
        elif after[container.name] != container:
            detail = f'existing ephemeral containers "{container.name}" may not be changed\n'
            faults.append(forbidden(_EPHEMERAL, detail))
    return faults


def resize(new: Pod, old: Pod) -> Faults:
    """Checks a change of the resources of a pod's containers."""
    refusal = _why_never(new, old)
    if refusal:
        return [forbidden(ROOT, refusal)]
    faults = meta.metadata_update(new, old) + pod_metadata_and_spec(new)
    names = [[c.name for c in _all_containers(pod.spec)] for pod in (new, old)]
    if names[0] != names[1]:
        return [*faults, forbidden("spec", "containers may not be added, removed or renamed")]
    if compute_qos_class(new) != qos_class(old):
        detail = "Pod QOS Class may not change as a result of resizing"
        faults.append(invalid("spec", new.status.qos_class or "", detail))
    if not _is_supported(old):
        faults.append(forbidden("spec", "Pod running on node without support for resize"))
    faults += _container_resizes(new.spec, old.spec)
    faults += _other_changes(new.spec, old.spec)
    return faults


def _all_containers(spec: PodSpec) -> list[Container]:
    return [*spec.containers, *(spec.init_containers or ())]


def _why_never(new: Pod, old: Pod) -> str:
    """Returns why the pod can never be resized, "" if it can."""
    for pod in (old, new):
        own = pod.spec.resources
        if own is not None and (own.requests or own.limits):
            return "pods with pod-level resources cannot be resized"
    if MIRROR in old.annotations:
        return "static pods cannot be resized"
    if old.spec.os is not None and old.spec.os.name == "windows":
        return "windows pods cannot be resized"
    return ""


def _is_sidecar(container: Container) -> bool:
    return container.restart_policy == "Always"


def _is_supported(pod: Pod) -> bool:
    """Reports whether the pod's node supports resizing, as far as the pod's status says.

    A node that does reports the resources of running containers.
    """
    for status in pod.status.container_statuses or ():
        if status.state is not None and status.state.running is not None:
            return status.resources is not None
    return True


def _container_resizes(new: PodSpec, old: PodSpec) -> Faults:
    faults: Faults = []
    pairs = zip(new.init_containers or (), old.init_containers or (), strict=True)
    for index, (after, before) in enumerate(pairs):
        if _is_sidecar(before):
            faults += _container_resize(after, before, f"spec.initContainers[{index}].resources")
    for index, (after, before) in enumerate(zip(new.containers, old.containers, strict=True)):
        faults += _container_resize(after, before, f"spec.containers[{index}].resources")
    return faults


def _container_resize(new: Container, old: Container, path: str) -> Faults:
    faults: Faults = []
    for field in ("requests", "limits"):
        after, before = getattr(new.resources, field) or {}, getattr(old.resources, field) or {}
        if before.keys() - after.keys():
            faults.append(forbidden(f"{path}.{field}", f"resource {field} cannot be removed"))
    return faults


def _other_changes(new: PodSpec, old: PodSpec) -> Faults:
    """Finds changes other than those of CPU and memory that may be resized."""
    faults: Faults = []
    containers = _masked(new.containers, old.containers)
    faults += [
        forbidden("spec", _NO_OTHERS)
        for after, before in zip(containers, old.containers, strict=True)
        if after != before
    ]
    for after, before in zip(new.init_containers or (), old.init_containers or (), strict=True):
        if not _is_sidecar(before):
            if after != before:
                detail = "resources for non-sidecar init containers are immutable"
                faults.append(forbidden("spec", detail))
        elif _mask(after, before) != before:
            detail = "only cpu and memory resources for sidecar containers are mutable"
            faults.append(forbidden("spec", detail))
    return faults


def _masked(new: Sequence[Container], old: Sequence[Container]) -> list[Container]:
    return [_mask(after, before) for after, before in zip(new, old, strict=True)]


def _mask(new: Container, old: Container) -> Container:
    """Returns the new container with the old one's CPU and memory."""
    limits = _mask_amounts(new.resources.limits, old.resources.limits)
    requests = _mask_amounts(new.resources.requests, old.resources.requests)
    return new.replace(resources=ResourceRequirements(limits=limits, requests=requests))


def _mask_amounts(new: ResourceList | None, old: ResourceList | None) -> ResourceList | None:
    if old is None:
        return None
    kept = {name: amount for name, amount in (new or {}).items() if name not in _RESIZABLE}
    return kept | {name: old[name] for name in _RESIZABLE if name in old}
