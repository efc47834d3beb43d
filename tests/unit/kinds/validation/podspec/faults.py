"""Faults of pods with given parts of a spec, whose fields have their names in JSON."""

from __future__ import annotations

from typing import Any

from kcm.api import codec
from kcm.api.core_v1 import Pod
from kcm.kinds import defaults
from kcm.kinds.validation import validate_create

_PODS = Pod.resource


def of_spec(**spec: Any) -> list[str]:
    """Returns the faults of a pod with one container and this spec."""
    spec.setdefault("containers", [{"name": "c", "image": "i"}])
    body = {"metadata": {"name": "a", "namespace": "b"}, "spec": spec}
    return [str(fault) for fault in validate_create(defaults.apply(codec.decode(body, _PODS)))]


def of_container(*volumes: dict[str, Any], **fields: Any) -> list[str]:
    """Returns the faults of a pod's only container, without its path."""
    container = {"name": "c", "image": "i"} | fields
    faults = of_spec(containers=[container], volumes=list(volumes))
    return [fault.removeprefix("spec.containers[0].") for fault in faults]


def of_volume(**source: Any) -> list[str]:
    """Returns the faults of a pod's only volume, without its path."""
    faults = of_spec(volumes=[{"name": "v"} | source], serviceAccountName="robot")
    return [fault.removeprefix("spec.volumes[0].") for fault in faults]
