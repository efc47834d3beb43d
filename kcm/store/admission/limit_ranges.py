"""The admission plugin LimitRanger: sets default requests and limits, and rejects pods and claims
out of bounds.

As upstream's plugin it uses LimitRanges that it has read a short time ago; changes by this process
are seen at once.

Source: plugin/pkg/admission/limitranger/admission.go, Kubernetes 1.33.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from typing import TypeVar

from kcm import errors
from kcm.api.admissionregistration_v1 import CREATE, UPDATE
from kcm.api.core_v1 import Container, LimitRange, LimitRangeItem, PersistentVolumeClaim, Pod
from kcm.api.pods.resources import limits_of, requests_of
from kcm.apimachinery.meta_v1 import KubeObject
from kcm.apimachinery.quantity import Quantity, ResourceList
from kcm.clock import Clock
from kcm.kinds.quota.amounts import Amounts
from kcm.store.admission.memory import WriteWatch
from kcm.store.admission.plugin import Plugin, Write
from kcm.store.reader import StoreReader

ANNOTATION = "kubernetes.io/limit-ranger"
_HANDLED = frozenset(
    {
        (Pod.resource.name, "", CREATE),
        (Pod.resource.name, "resize", UPDATE),
        (PersistentVolumeClaim.resource.name, "", CREATE),
        (PersistentVolumeClaim.resource.name, "", UPDATE),
    }
)
T = TypeVar("T", bound=KubeObject)


class LimitRanger(Plugin):
    """Applies the LimitRanges of one store."""

    name = "LimitRanger"

    def __init__(self, reader: StoreReader, clock: Clock) -> None:
        self._reader = reader
        self._writes = WriteWatch(reader, LimitRange, clock)
        self._ranges: dict[str, Sequence[LimitRange]] = {}  # by namespace

    def handles(self, resource: str, subresource: str, operation: str) -> bool:
        sort = (resource, subresource, operation)
        return resource == LimitRange.resource.name or sort in _HANDLED

    def admit(self, write: Write) -> Write:
        """Raises: StoreUnavailable."""
        pod = write.new
        if write.operation != CREATE or not isinstance(pod, Pod):
            return write
        for limit_range in self._list_ranges(pod):
            pod = with_defaults(pod, limit_range)
        return write.with_new(pod)

    def validate(self, write: Write) -> None:
        """Raises: Forbidden, StoreUnavailable."""
        if write.resource.name == LimitRange.resource.name:
            self._writes.expect_change()
        elif write.old is None or not write.old.deleting:
            match write.new:
                case Pod() as pod:
                    self._check(pod, faults_of_pod)
                case PersistentVolumeClaim() as claim:
                    self._check(claim, faults_of_claim)

    def _check(self, obj: T, faults_of: Callable[[T, LimitRangeItem], Iterator[str]]) -> None:
        for limit_range in self._list_ranges(obj):
            faults = [why for item in limit_range.spec.limits for why in faults_of(obj, item)]
            _require(faults, obj)

    def _list_ranges(self, obj: KubeObject) -> Sequence[LimitRange]:
        """Returns the LimitRanges of the object's namespace."""
        if self._writes.has_changed():
            self._ranges = {}
        if not self._writes.newest:
            return ()
        namespace = obj.namespace or "default"
        if namespace not in self._ranges:
            self._ranges[namespace] = self._reader.in_namespace(LimitRange.resource, namespace)
        return self._ranges[namespace]


def _require(faults: Sequence[str], obj: KubeObject) -> None:
    if not faults:
        return
    why = faults[0] if len(faults) == 1 else f"[{', '.join(dict.fromkeys(faults))}]"
    resource, name = obj.resource.name, obj.name or obj.metadata.generate_name or "Unknown"
    raise errors.Forbidden(f'{resource} "{name}" is forbidden: {why}', resource=resource, name=name)


# --- defaults


def with_defaults(pod: Pod, limit_range: LimitRange) -> Pod:
    """Returns the pod with the range's defaults in its containers, and an annotation about them."""
    items = [item for item in limit_range.spec.limits if item.type == "Container"]
    requests = {n: a for item in items for n, a in (item.default_request or {}).items()}
    limits = {n: a for item in items for n, a in (item.default or {}).items()}
    filled: list[str] = []  # for the annotation: what was set, in upstream's words
    spec = pod.spec
    containers = [
        _fill_container(c, requests, limits, "container", filled) for c in spec.containers
    ]
    inits = [
        _fill_container(c, requests, limits, "init container", filled)
        for c in spec.init_containers or ()
    ]
    if not filled:
        return pod
    text = f"LimitRanger plugin set: {'; '.join(filled)}"
    changed = pod.with_spec(spec.replace(containers=containers, init_containers=inits or None))
    return changed.with_metadata(annotations={**pod.annotations, ANNOTATION: text})


def _fill_container(
    container: Container, requests: Amounts, limits: Amounts, what: str, filled: list[str]
) -> Container:
    own = container.resources
    changes: dict[str, ResourceList] = {}
    for field, defaults in (("requests", requests), ("limits", limits)):
        given: ResourceList = getattr(own, field) or {}
        missing = {name: amount for name, amount in defaults.items() if name not in given}
        if missing:
            changes[field] = {**given, **missing}
            names = ", ".join(sorted(missing))
            filled.append(f"{names} {field.removesuffix('s')} for {what} {container.name}")
    return container.replace(resources=own.replace(**changes)) if changes else container


# --- limits


def faults_of_pod(pod: Pod, item: LimitRangeItem) -> Iterator[str]:
    """Yields a message, in upstream's words, for each amount of the pod that breaks the limits."""
    if item.type == "Container":
        for container in [*pod.spec.containers, *(pod.spec.init_containers or ())]:
            resources = container.resources
            yield from _faults(item, resources.requests or {}, resources.limits or {})
    elif item.type == "Pod":
        spec = pod.spec.replace(overhead=None)
        yield from _faults(item, requests_of(spec), limits_of(spec))


def faults_of_claim(claim: PersistentVolumeClaim, item: LimitRangeItem) -> Iterator[str]:
    """Yields a message, in upstream's words, for each requested amount of the claim out of
    bounds.
    """
    if item.type != "PersistentVolumeClaim":
        return
    requests = claim.spec.resources.requests or {}
    for name, bound in (item.min or {}).items():
        yield from _too_little(item.type, name, bound, requests, {})
    for name, bound in (item.max or {}).items():
        words = f"maximum {name} usage per {item.type} is {bound}"
        if name not in requests:
            yield f"{words}. No request is specified"
        elif requests[name] > bound:
            yield f"{words}, but request is {requests[name]}"


def _faults(item: LimitRangeItem, requests: Amounts, limits: Amounts) -> Iterator[str]:
    for name, bound in (item.min or {}).items():
        yield from _too_little(item.type, name, bound, requests, limits)
    for name, bound in (item.max or {}).items():
        yield from _too_much(item.type, name, bound, requests, limits)
    for name, bound in (item.max_limit_request_ratio or {}).items():
        yield from _too_far(item.type, name, bound, requests.get(name), limits.get(name))


def _too_little(
    of: str, name: str, bound: Quantity, requests: Amounts, limits: Amounts
) -> Iterator[str]:
    words = f"minimum {name} usage per {of} is {bound}"
    if name not in requests:
        yield f"{words}. No request is specified"
    elif requests[name] < bound:
        yield f"{words}, but request is {requests[name]}"
    elif name in limits and limits[name] < bound:
        yield f"{words}, but limit is {limits[name]}"


def _too_much(
    of: str, name: str, bound: Quantity, requests: Amounts, limits: Amounts
) -> Iterator[str]:
    words = f"maximum {name} usage per {of} is {bound}"
    if name not in limits:
        yield f"{words}. No limit is specified"
    elif limits[name] > bound:
        yield f"{words}, but limit is {limits[name]}"
    elif name in requests and requests[name] > bound:
        yield f"{words}, but request is {requests[name]}"


def _too_far(
    of: str, name: str, bound: Quantity, request: Quantity | None, limit: Quantity | None
) -> Iterator[str]:
    words = f"{name} max limit to request ratio per {of} is {bound}"
    if not request:
        yield f"{words}, but no request is specified or request is 0"
    elif not limit:
        yield f"{words}, but no limit is specified or limit is 0"
    elif limit.nanos * 10**9 > bound.nanos * request.nanos:
        yield f"{words}, but provided ratio is {limit.nanos / request.nanos:f}"
