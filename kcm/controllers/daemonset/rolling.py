"""Plans one step of a rolling update: old pods are deleted first, or new pods created first
(surge).

Source: rollingUpdate in pkg/controller/daemon/update.go, Kubernetes 1.33. Departure:
kubernetes/kubernetes issue 123232 is fixed, so bad pods count as unavailable, and nodes that are no
longer selected do not use up the surge.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence

from kcm.api.core_v1 import Pod
from kcm.controllers.daemonset.daemons import Daemons, max_surge, max_unavailable

Pair = tuple[Pod | None, Pod | None]  # the new pod of a node, and the old one


def roll(daemons: Daemons) -> None:
    """Adds to `daemons` the creations and deletions that the update allows now.

    Call it only when `manage` found nothing to do. So nodes where pods are created or deleted
    already are not counted twice.
    """
    nodes = len(daemons.wanted)
    surge = max_surge(daemons.daemon_set, nodes)
    if surge:
        _surge(daemons, surge)
    else:
        _replace(daemons, max_unavailable(daemons.daemon_set, nodes))


def _pairs(daemons: Daemons) -> Iterator[tuple[str, Pair | None]]:
    """Yields each node with its new and its old pod, or with None if it has several new or old
    ones.
    """
    names = [*daemons.by_node, *(n for n in daemons.wanted if n not in daemons.by_node)]
    for node in names:
        pods = [pod for pod in daemons.by_node.get(node, ()) if not pod.deleting]
        new = [pod for pod in pods if daemons.is_updated(pod)]
        old = [pod for pod in pods if not daemons.is_updated(pod)]
        several = len(new) > 1 or len(old) > 1
        yield node, None if several else (_only(new), _only(old))


def _only(pods: Sequence[Pod]) -> Pod | None:
    """Returns the first pod, or None if there is none."""
    return pods[0] if pods else None


def _replace(daemons: Daemons, allowed: int) -> None:
    """Deletes all old pods that are unavailable, and as many of the others as may be unavailable.

    Nodes that have no available pod reduce that number.
    """
    unavailable = 0
    candidates: list[Pod] = []
    for _, pair in _pairs(daemons):
        new, old = pair or (None, None)
        if old is None or new is not None:
            unavailable += new is None or old is not None or not daemons.is_available(new)
        elif daemons.is_available(old):
            candidates.append(old)
        else:
            unavailable += 1
            daemons.to_delete.append(old)
    daemons.to_delete += candidates[: max(0, allowed - unavailable)]


def _surge(daemons: Daemons, allowed: int) -> None:
    """Creates new pods beside old ones, and deletes old pods whose new pods are available.

    An old pod on a node that the template no longer selects is kept while fewer pods are available
    than nodes are selected.
    """
    surging, available = 0, 0
    candidates: list[str] = []
    unfit: list[Pod] = []
    for node, pair in _pairs(daemons):
        new, old = pair or (None, None)
        available += _serves(daemons, old or new)
        if pair is None or (new is not None and not daemons.is_available(new)):
            surging += pair is None or old is not None
        elif old is None or node not in daemons.fitness:
            continue  # There is nothing to replace; or the node is gone, and PodGC takes the pod.
        elif new is not None or not (daemons.fitness[node].starts or daemons.is_available(old)):
            daemons.to_delete.append(old)
        elif not daemons.fitness[node].starts:
            unfit.append(old)
        elif daemons.is_available(old):
            candidates.append(node)
        else:
            daemons.missing.append(node)
    daemons.to_delete += unfit[: max(0, available - len(daemons.wanted))]
    daemons.missing += candidates[: max(0, allowed - surging)]


def _serves(daemons: Daemons, pod: Pod | None) -> bool:
    return pod is not None and daemons.is_available(pod)
