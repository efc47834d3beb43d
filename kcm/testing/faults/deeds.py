"""The kinds of failures that chaos picks from. Each picks a victim, and says how it is undone."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from functools import partial
from typing import Literal, TypeVar

from kcm.api.admissionregistration_v1 import (
    MutatingWebhookConfiguration,
    ValidatingWebhookConfiguration,
)
from kcm.apiserver.filters.fault_rules import Ending
from kcm.store import Store
from kcm.testing.faults.answers import ErrorCode
from kcm.testing.faults.fault import Fault
from kcm.testing.faults.faults import Faults
from kcm.testing.faults.nodes import FaultyNode, Nodes
from kcm.testing.faults.pods import FaultyPod, Pods

T = TypeVar("T")
_CONFIGURATIONS = tuple(
    kind.resource for kind in (MutatingWebhookConfiguration, ValidatingWebhookConfiguration)
)
_MOST_REQUESTS = 3  # that one deed hits
_MOST_CHANGES = 5  # that a stale read is behind
_SHORTEST, _LONGEST = 0.1, 1.0  # seconds of latency


@dataclass(frozen=True)
class Victims:
    """The parts of a control plane that chaos may pick its victims from."""

    faults: Faults
    nodes: Nodes
    pods: Pods
    store: Callable[[], Store]
    for_: str | None = None  # the client whose requests fail; None: all of them
    namespace: str | None = None  # of the pods; None: all of them


@dataclass(frozen=True)
class Done:
    """The victim of a failure, and how the failure is undone if it lasts."""

    target: str
    undo: Callable[[], None] | None = None


# Makes the victim fail that a number from 0 to 1 picks. Returns None if there is no victim.
Deed = Callable[[Victims, float], Done | None]


def _choose(items: Sequence[T], pick: float) -> T | None:
    return items[int(pick * len(items))] if items else None


def _until_removed(fault: Fault) -> Done:
    return Done(str(fault), fault.remove)


def _fail(error: ErrorCode | Ending, victims: Victims, pick: float) -> Done:
    times = _count_requests(pick)
    return _until_removed(victims.faults.api(error=error, times=times, for_=victims.for_))


def _count_requests(pick: float) -> int:
    return 1 + int(pick * _MOST_REQUESTS)


def _slow(victims: Victims, pick: float) -> Done:
    latency = round(_SHORTEST + pick * (_LONGEST - _SHORTEST), 2)
    times = _count_requests(pick)
    return _until_removed(victims.faults.api(latency=latency, times=times, for_=victims.for_))


def _cut_watches(victims: Victims, pick: float) -> Done:
    return Done(str(victims.faults.watches(for_=victims.for_)))


def _expire_watches(victims: Victims, pick: float) -> Done:
    return _until_removed(victims.faults.watches(how="expired", for_=victims.for_))


def _make_stale(victims: Victims, pick: float) -> Done:
    by = 1 + int(pick * _MOST_CHANGES)
    return _until_removed(victims.faults.stale_lists(by=by, for_=victims.for_))


def _fail_webhook(victims: Victims, pick: float) -> Done | None:
    store = victims.store()
    names = [one.name for kind in _CONFIGURATIONS for one in store.list_all(kind).objects]
    name = _choose(sorted(names), pick)
    return _until_removed(victims.faults.webhook(name)) if name is not None else None


def _harm_node(act: Callable[[FaultyNode], None], victims: Victims, pick: float) -> Done | None:
    node = _choose(list(victims.nodes), pick)
    if node is None or node.states:
        return None
    act(node)
    return Done(node.name, node.heal)


def _harm_pod(
    act: Callable[[FaultyPod], None], victims: Victims, pick: float, *, lasts: bool = False
) -> Done | None:
    inside = f"{victims.namespace}/" if victims.namespace else ""
    pod = _choose([one for one in victims.pods if one.key.startswith(inside)], pick)
    if pod is None:
        return None
    act(pod)
    return Done(pod.key, pod.heal if lasts else None)


ChaosKind = Literal[
    "conflict", "busy", "error", "unavailable", "timeout", "cut", "slow", "watch-cut",
    "watch-expired", "stale", "webhook", "node-stop", "node-partition", "node-full", "pod-crash",
    "pod-oom", "pod-not-ready",
]  # fmt: skip
DEEDS: Mapping[ChaosKind, Deed] = {
    "conflict": partial(_fail, 409),
    "busy": partial(_fail, 429),
    "error": partial(_fail, 500),
    "unavailable": partial(_fail, 503),
    "timeout": partial(_fail, "timeout"),
    "cut": partial(_fail, "cut"),
    "slow": _slow,
    "watch-cut": _cut_watches,
    "watch-expired": _expire_watches,
    "stale": _make_stale,
    "webhook": _fail_webhook,
    "node-stop": partial(_harm_node, FaultyNode.stop),
    "node-partition": partial(_harm_node, FaultyNode.partition),
    "node-full": partial(_harm_node, FaultyNode.full),
    "pod-crash": partial(_harm_pod, FaultyPod.crash),
    "pod-oom": partial(_harm_pod, FaultyPod.oom),
    "pod-not-ready": partial(_harm_pod, FaultyPod.not_ready, lasts=True),
}
