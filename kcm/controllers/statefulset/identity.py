"""The identity of a StatefulSet's pods: their ordinals, names, labels and volumes.

Source: pkg/controller/statefulset/stateful_set_utils.go, Kubernetes 1.33.
"""

from __future__ import annotations

import re
from datetime import datetime

from kcm.api.apps_v1 import StatefulSet
from kcm.api.core_v1 import Pod, PodSpec, PodTemplateSpec, Volume
from kcm.api.core_v1.volume_sources import PersistentVolumeClaimVolumeSource
from kcm.helpers.history import REVISION_HASH
from kcm.helpers.pods import available_in, is_ready, pod_from_template

POD_NAME = "statefulset.kubernetes.io/pod-name"
POD_INDEX = "apps.kubernetes.io/pod-index"

_NUMBERED = re.compile(r"(.*)-([0-9]+)", re.ASCII | re.DOTALL)
_INT32_MAX = 2**31 - 1


def wanted_replicas(stateful_set: StatefulSet) -> int:
    """Returns how many pods the set wants."""
    return 1 if stateful_set.spec.replicas is None else stateful_set.spec.replicas


def start_of(stateful_set: StatefulSet) -> int:
    """Returns the ordinal of the first pod."""
    return stateful_set.spec.ordinals.start if stateful_set.spec.ordinals else 0


def is_member(stateful_set: StatefulSet, pod: Pod) -> bool:
    """Reports whether the pod's name is the set's name with a number."""
    match = _NUMBERED.fullmatch(pod.name)
    return match is not None and match[1] == stateful_set.name


def ordinal_of(pod: Pod) -> int:
    """Returns the ordinal at the end of the pod's name, -1 if there is none that is valid."""
    match = _NUMBERED.fullmatch(pod.name)
    number = int(match[2][:11]) if match else -1
    return number if number <= _INT32_MAX else -1


def in_range(stateful_set: StatefulSet, ordinal: int) -> bool:
    """Reports whether the set should have a pod of this ordinal."""
    return 0 <= ordinal - start_of(stateful_set) < wanted_replicas(stateful_set)


def revision_of(pod: Pod) -> str:
    """Returns the name of the revision from which the pod was created, "" if it is unknown."""
    return pod.labels.get(REVISION_HASH, "")


def claim_name(template: str, pod: str) -> str:
    """Returns the name of the claim that a pod gets from a claim template."""
    return f"{template}-{pod}"


def new_pod(
    stateful_set: StatefulSet, template: PodTemplateSpec, ordinal: int, revision: str
) -> Pod:
    """Returns a new pod for an ordinal. `template` is that of the revision with the name
    `revision`.
    """
    pod = pod_from_template(template, stateful_set)
    name = f"{stateful_set.name}-{ordinal}"
    labels = {**identity_labels(name, ordinal), REVISION_HASH: revision}
    spec = pod.spec.replace(hostname=name, subdomain=stateful_set.spec.service_name or None)
    named = pod.with_metadata(name=name, labels={**pod.labels, **labels})
    return named.with_spec(_with_claims(stateful_set, name, spec))


def identity_labels(name: str, ordinal: int) -> dict[str, str]:
    return {POD_NAME: name, POD_INDEX: str(ordinal)}


def _with_claims(stateful_set: StatefulSet, pod: str, spec: PodSpec) -> PodSpec:
    """Returns the spec with claims as volumes. They replace the template's volumes of the same
    names.
    """
    names = [claim.name for claim in stateful_set.spec.volume_claim_templates or ()]
    claimed = [
        Volume(
            name=name,
            persistent_volume_claim=PersistentVolumeClaimVolumeSource(
                claim_name=claim_name(name, pod)
            ),
        )
        for name in names
    ]
    rest = [volume for volume in spec.volumes or () if volume.name not in names]
    return spec.replace(volumes=[*claimed, *rest] or None)


def has_identity(pod: Pod) -> bool:
    """Reports whether the pod has the labels with its name and ordinal."""
    return identity_labels(pod.name, ordinal_of(pod)).items() <= pod.labels.items()


def with_identity(obj: Pod) -> Pod:
    """Returns the pod with the labels with its name and ordinal."""
    if has_identity(obj):
        return obj
    return obj.with_metadata(labels={**obj.labels, **identity_labels(obj.name, ordinal_of(obj))})


def is_running_and_ready(pod: Pod) -> bool:
    return pod.status.phase == "Running" and is_ready(pod)


def is_available(stateful_set: StatefulSet, pod: Pod, now: datetime) -> bool:
    """Reports whether the pod is running and has been ready for minReadySeconds."""
    seconds = stateful_set.spec.min_ready_seconds or 0
    return is_running_and_ready(pod) and available_in(pod, seconds, now) == 0


def is_unavailable(stateful_set: StatefulSet, pod: Pod | None, now: datetime) -> bool:
    """Reports whether an update has to wait for the pod, which may be missing or being deleted."""
    return pod is None or pod.deleting or not is_available(stateful_set, pod, now)
