"""A pod as the scheduler sees it: what counts for placing it, worked out once.

Source: pkg/scheduler/framework/types.go (PodInfo), Kubernetes 1.33.
"""

from __future__ import annotations

from collections.abc import Mapping
from datetime import UTC, datetime

from kcm.api.core_v1 import Container, Pod
from kcm.api.ownership import controller_of
from kcm.reconcile.pods import condition_of
from kcm.scheduler.podterms import NO_TERMS, PodTerms, terms_of
from kcm.scheduler.resources import Requests, requests_of

DEFAULT_SCHEDULER = "default-scheduler"
_TERMINAL = frozenset({"Succeeded", "Failed"})
_NO_LABELS: Mapping[str, str] = {}
_LONG_AGO = datetime.min.replace(tzinfo=UTC)

Port = tuple[str, str, int]  # host IP, protocol, port


class PodInfo:
    """One pod. `source` is the cached object that it was made from."""

    __slots__ = (
        "deleting", "fault", "generation", "labels", "namespace", "node", "nominated", "ports",
        "priority", "requests", "source", "terms", "uid",
    )  # fmt: skip

    def __init__(self, pod: Pod) -> None:
        spec, meta = pod.spec, pod.metadata
        self.source = pod
        self.uid = meta.uid or ""
        self.namespace = meta.namespace or ""
        self.labels = meta.labels or _NO_LABELS
        self.generation = meta.generation
        self.deleting = meta.deletion_timestamp is not None
        self.node = spec.node_name or ""
        self.nominated = pod.status.nominated_node_name or ""
        self.priority = spec.priority or 0
        self.requests: Requests = requests_of(spec)
        self.ports: tuple[Port, ...] = _ports(pod)
        self.fault: Exception | None = None  # why its rules make no sense
        self.terms: PodTerms = NO_TERMS
        if spec.affinity:
            self._compile()

    def _compile(self) -> None:
        """Understand the affinity; one that cannot be leaves the pod without terms, unplaced."""
        try:
            self.terms = terms_of(self.source.spec.affinity, self.namespace, self.labels)
        except (AttributeError, TypeError, ValueError) as fault:
            self.fault = fault

    @property
    def name(self) -> str:
        return self.source.metadata.name or ""

    @property
    def key(self) -> str:
        return f"{self.namespace}/{self.name}"

    @property
    def created(self) -> datetime:
        """When it was created; those that do not say so came first."""
        return self.source.metadata.creation_timestamp or _LONG_AGO

    @property
    def started(self) -> datetime | None:
        """When its node took it on."""
        return self.source.status.start_time

    def is_current(self, pod: Pod) -> bool:
        """Whether nothing that counts differs in a newer state of the same pod."""
        meta = pod.metadata
        return (
            meta.generation == self.generation
            and meta.generation is not None
            and (pod.spec.node_name or "") == self.node
            and (meta.deletion_timestamp is not None) == self.deleting
            and (pod.status.nominated_node_name or "") == self.nominated
            and (meta.labels or _NO_LABELS) == self.labels
            and pod.status.phase not in _TERMINAL
        )


def is_preempted(info: PodInfo) -> bool:
    """Whether it goes because the scheduler needs its place."""
    found = condition_of(info.source.status, "DisruptionTarget")
    return (
        info.deleting
        and found is not None
        and found.status == "True"
        and found.reason == "PreemptionByScheduler"
    )


def owner_of(pod: Pod) -> tuple[str, str, str]:
    """Kind, name and uid of the controlling owner; empty for none."""
    found = controller_of(pod)
    return ("", "", "") if found is None else (found.kind, found.name, found.uid or "")


def _ports(pod: Pod) -> tuple[Port, ...]:
    found = [
        (port.host_ip or "0.0.0.0", port.protocol or "TCP", port.host_port)
        for container in (*pod.spec.containers, *_sidecars(pod))
        for port in container.ports or ()
        if port.host_port
    ]
    return tuple(found)


def _sidecars(pod: Pod) -> list[Container]:
    return [c for c in pod.spec.init_containers or () if c.restart_policy == "Always"]
