"""One step of a rolling update: old pods go first, or new ones come first (surge).

Source: rollingUpdate in pkg/controller/daemon/update.go, Kubernetes 1.33.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence

from kcm.api.core_v1 import Pod
from kcm.controllers.daemonset.daemons import Daemons, max_surge, max_unavailable

Pair = tuple[Pod | None, Pod | None]  # the new pod of a node, and the old one


def roll(daemons: Daemons) -> None:
    """Add what the update may do now. Nodes where pods come or go already are not counted
    twice: this runs when nothing else is to be done."""
    nodes = len(daemons.wanted)
    surge = max_surge(daemons.found, nodes)
    if surge:
        _surge(daemons, surge)
    else:
        _replace(daemons, max_unavailable(daemons.found, nodes))


def _pairs(daemons: Daemons) -> Iterator[tuple[str, Pair | None]]:
    """By node; None where there are more than one of either."""
    names = [*daemons.by_node, *(n for n in daemons.wanted if n not in daemons.by_node)]
    for node in names:
        pods = [pod for pod in daemons.by_node.get(node, ()) if not pod.deleting]
        new = [pod for pod in pods if daemons.is_updated(pod)]
        old = [pod for pod in pods if not daemons.is_updated(pod)]
        several = len(new) > 1 or len(old) > 1
        yield node, None if several else (_only(new), _only(old))


def _only(pods: Sequence[Pod]) -> Pod | None:
    return pods[0] if pods else None


def _replace(daemons: Daemons, allowed: int) -> None:
    """Delete old pods: all that are of no use, and of the others as many as may be missing."""
    unavailable = 0
    candidates: list[Pod] = []
    for _, pair in _pairs(daemons):
        new, old = pair or (None, None)
        if old is None or new is not None:
            unavailable += new is None or old is not None or not daemons.is_available(new)
        elif daemons.is_available(old):
            candidates.append(old)
        else:
            daemons.doomed.append(old)
    daemons.doomed += candidates[: max(0, allowed - unavailable)]


def _surge(daemons: Daemons, allowed: int) -> None:
    """Create new pods beside old ones; where they are available, the old ones go."""
    surging = 0
    candidates: list[str] = []
    unwanted: list[Pod] = []
    for node, pair in _pairs(daemons):
        if pair is None:
            surging += 1
            continue
        new, old = pair
        if old is None:
            continue
        if new is not None:
            if daemons.is_available(new):
                daemons.doomed.append(old)
            else:
                surging += 1
        elif node not in daemons.fitness or not daemons.fitness[node].starts:
            unwanted.append(old)  # a new one would not come to this node
        elif daemons.is_available(old):
            candidates.append(node)
        else:
            daemons.missing.append(node)
    left = max(0, allowed - surging)
    daemons.doomed += unwanted[:left]
    daemons.missing += candidates[: left - len(unwanted[:left])]
