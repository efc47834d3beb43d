"""Validation of RuntimeClasses.

Source: pkg/apis/node/validation/validation.go, Kubernetes 1.33.
"""

from __future__ import annotations

from collections.abc import Sequence

from kcm.api.core_v1 import Toleration
from kcm.api.core_v1.containers import ResourceRequirements
from kcm.api.node_v1 import RuntimeClass
from kcm.apimachinery import metadata_checks, names
from kcm.apimachinery.field_errors import Faults, duplicate, invalid_all, require_unchanged
from kcm.kinds.validation import meta
from kcm.kinds.validation.podspec import pods, resources


def create(obj: RuntimeClass) -> Faults:
    faults = meta.metadata(obj, namespaced=False, name_rule=names.subdomain_faults)
    faults += invalid_all("handler", obj.handler, names.label_faults(obj.handler))
    if obj.overhead is not None:
        limits = ResourceRequirements(limits=obj.overhead.pod_fixed)
        faults += resources.requirements(limits, "overhead")
    if obj.scheduling is not None:
        faults += metadata_checks.labels(obj.scheduling.node_selector, "scheduling.nodeSelector")
        faults += _tolerations(obj.scheduling.tolerations or (), "scheduling.tolerations")
    return faults


def _tolerations(tolerations: Sequence[Toleration], path: str) -> Faults:
    faults = pods.tolerations(tolerations, path)
    seen: set[tuple[str | None, ...]] = set()
    for index, one in enumerate(tolerations):
        identity = one.key, one.operator, one.value, one.effect
        if identity in seen:
            faults.append(duplicate(f"{path}[{index}]", one))
        seen.add(identity)
    return faults


def update(new: RuntimeClass, old: RuntimeClass) -> Faults:
    return meta.metadata_update(new, old) + require_unchanged("handler", new.handler, old.handler)
