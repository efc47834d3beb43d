"""Computes the requests of a pod as whole numbers: millicores of CPU, and other units.

Source: staging/src/k8s.io/component-helpers/resource/helpers.go (PodRequests) and
pkg/scheduler/util/pod_resources.go, Kubernetes 1.33.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import NamedTuple

from kcm.api.core_v1 import Container, Pod, PodSpec
from kcm.api.pods.resources import list_pod_level
from kcm.apimachinery.quantity import ResourceList
from kcm.helpers.pods import is_sidecar

CPU, MEMORY, STORAGE, PODS = "cpu", "memory", "ephemeral-storage", "pods"
# The requests that scores assume for a container without requests: millicores and bytes.
DEFAULT_MILLI_CPU = 100
DEFAULT_MEMORY = 200 * 1024 * 1024
_DEFAULTS = {CPU: DEFAULT_MILLI_CPU, MEMORY: DEFAULT_MEMORY}
_NONE: Mapping[str, int] = {}


class PodRequests(NamedTuple):
    """A pod's requests: millicores, bytes, and counts of other resources.

    `scoring_cpu` and `scoring_memory` assume a default for containers without a request.
    """

    cpu: int
    memory: int
    storage: int
    others: tuple[tuple[str, int], ...]  # extended resources and huge pages
    scoring_cpu: int
    scoring_memory: int


def amounts(quantities: ResourceList | None) -> dict[str, int]:
    """Returns quantities as whole numbers: CPU in millicores, others in bytes or units."""
    return {
        name: quantity.milli_value() if name == CPU else quantity.value()
        for name, quantity in (quantities or {}).items()
    }


def reserve_resized(pod: Pod) -> PodSpec:
    """Returns the pod's spec with what is reserved for it while it is being resized.

    That is the larger of what each container asks for and what its status says it has; of a resize
    that its node can never do, only the latter. It is the same spec if nothing is being resized.
    """
    status, spec = pod.status, pod.spec
    given = {
        one.name: one.resources.requests or {}
        for one in (*(status.container_statuses or ()), *(status.init_container_statuses or ()))
        if one.resources is not None
    }
    containers = (*spec.containers, *(spec.init_containers or ()))
    if all(given.get(c.name, _asked(c)) == _asked(c) for c in containers):
        return spec
    infeasible = any(
        c.type == "PodResizePending" and c.reason == "Infeasible" for c in status.conditions or ()
    )

    def reserve(container: Container) -> Container:
        has = given.get(container.name)
        if has is None:
            return container
        asked = has if infeasible else _asked(container)
        larger = {**has, **{n: max(amount, has.get(n, amount)) for n, amount in asked.items()}}
        return container.replace(resources=container.resources.replace(requests=larger))

    return spec.replace(
        containers=[reserve(container) for container in spec.containers],
        init_containers=[reserve(c) for c in spec.init_containers or ()] or None,
    )


def _asked(container: Container) -> ResourceList:
    return container.resources.requests or {}


def requests_of(spec: PodSpec) -> PodRequests:
    """Returns a pod's requests as the scheduler counts them."""
    plain = _total(spec, _NONE)
    scoring = _total(spec, _DEFAULTS)
    others = {n: a for n, a in plain.items() if n not in (CPU, MEMORY, STORAGE, PODS) and a}
    return PodRequests(
        plain.get(CPU, 0),
        plain.get(MEMORY, 0),
        plain.get(STORAGE, 0),
        tuple(sorted(others.items())),
        scoring.get(CPU, 0),
        scoring.get(MEMORY, 0),
    )


def _total(spec: PodSpec, missing: Mapping[str, int]) -> dict[str, int]:
    """Returns a pod's requests; `missing` are those of containers that request nothing.

    All containers and sidecars run together, and each init container runs with the sidecars before
    it. The larger sum counts, plus the overhead.
    """
    running: dict[str, int] = {}
    for container in spec.containers:
        _add(running, _read_requests(container, missing))
    if spec.init_containers:
        _with_init_containers(running, spec.init_containers, missing)
    running.update(amounts(list_pod_level(spec, "requests")))
    if spec.overhead:
        _add(running, amounts(spec.overhead))
    return running


def _with_init_containers(
    running: dict[str, int], containers: list[Container], missing: Mapping[str, int]
) -> None:
    sidecars: dict[str, int] = {}
    peak: dict[str, int] = {}
    for container in containers:
        needs = _read_requests(container, missing)
        if is_sidecar(container):
            _add(running, needs)
            _add(sidecars, needs)
            needs = sidecars
        else:
            _add(needs, sidecars)
        for name, amount in needs.items():
            peak[name] = max(peak.get(name, 0), amount)
    for name, amount in peak.items():
        running[name] = max(running.get(name, 0), amount)


def _read_requests(container: Container, missing: Mapping[str, int]) -> dict[str, int]:
    return {**missing, **amounts(container.resources.requests)}


def _add(total: dict[str, int], more: Mapping[str, int]) -> None:
    for name, amount in more.items():
        total[name] = total.get(name, 0) + amount
