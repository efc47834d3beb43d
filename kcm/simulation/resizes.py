"""Resizes a pod on a simulated node: gives it the resources that it asks for, if there is room.

What a pod has meanwhile is remembered in its run only while a resize waits, and is otherwise what
its status reports.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass

from kcm.api.core_v1 import Node, Pod
from kcm.kubelet import resizing
from kcm.kubelet.admission import NodeUsage, find_resize_refusal
from kcm.kubelet.resizing import Refusal
from kcm.simulation.runs import NOTHING, PodRun

RETRY = 10.0  # seconds between attempts at a resize for which the node has no room


@dataclass(frozen=True, slots=True)
class ResizeStep:
    """What a look at a pod's resize has found.

    `pod` has the resources that the node gives it. `is_changed` says whether the node has to count
    them anew, `restarts` which containers start again for them, and `news` is a refusal that is to
    be recorded.
    """

    pod: Pod
    is_changed: bool = False
    restarts: Sequence[str] = ()
    news: Refusal | None = None


def resize(pod: Pod, run: PodRun, others: Callable[[], NodeUsage], node: Node | None) -> ResizeStep:
    """Gives the pod the resources that it asks for if its node has room for them.

    `others` returns what the other pods of the node occupy.
    """
    if run.over or not run.attempts or node is None:
        return ResizeStep(pod)
    before = {**resizing.reported_by(pod), **run.held}
    if resizing.is_same(before, resizing.wanted_by(pod)):
        is_changed = run.refusal is not None  # the pod asks for what it has again
        run.refusal, run.held = None, NOTHING
        return ResizeStep(pod, is_changed)
    refusal = find_resize_refusal(pod, others(), node)
    if refusal is None:
        run.refusal, run.held = None, NOTHING
        restarts = resizing.list_changed(pod, before, restarts=True)
        return ResizeStep(pod, is_changed=True, restarts=restarts)
    news = refusal if refusal != run.refusal else None
    run.refusal, run.held = refusal, before
    return ResizeStep(resizing.with_allocation(pod, before), is_changed=True, news=news)
