"""What the HTTP API answers: moments, faults, writes and explanations as JSON."""

from __future__ import annotations

from typing import Any

from kcm.apimachinery.meta_v1 import format_micro_time
from kcm.testing.control_plane.rest import Rest
from kcm.testing.control_plane.timing import Timekeeper
from kcm.testing.faults.fault import Fault
from kcm.testing.faults.nodes import FaultyNode
from kcm.testing.history.explanation import Explanation
from kcm.testing.history.writes import History, Write

Document = dict[str, Any]


def show_clock(clock: Timekeeper) -> Document:
    """Returns the time, and whether it stands still."""
    return {"now": format_micro_time(clock.now), "frozen": clock.frozen}


def show_rest(rest: Rest) -> Document:
    """Returns a moment at which nothing is left to do, and what comes next."""
    pending = [{"when": format_micro_time(one.when), "what": one.what} for one in rest.pending]
    return {"at": format_micro_time(rest.at), "pending": pending}


def show_fault(number: int, fault: Fault) -> Document:
    """Returns a fault, and how often it was hit."""
    return {"id": number, "fault": str(fault), "hits": fault.hits, "usedUp": fault.used_up}


def show_node(node: FaultyNode) -> Document:
    """Returns a simulated node, and what was done to it."""
    return {"name": node.name, "ready": node.ready, "states": sorted(node.states)}


def show_write(write: Write) -> Document:
    """Returns a write without the whole objects: what was changed, when, and by whom."""
    return {
        "time": format_micro_time(write.time),
        "resourceVersion": str(write.resource_version),
        "verb": write.verb,
        "event": write.event,
        "kind": write.kind,
        "resource": write.resource,
        "subresource": write.subresource,
        "namespace": write.namespace,
        "name": write.name,
        "author": write.author.name,
        "agent": write.author.agent,
        "key": write.author.key,
        "changes": [str(one) for one in write.changes],
    }


def show_history(history: History) -> Document:
    """Returns writes, how many are no longer kept, and all as a timeline."""
    return {
        "writes": [show_write(write) for write in history],
        "dropped": history.dropped,
        "text": str(history),
    }


def show_explanation(explanation: Explanation) -> Document:
    """Returns why an object is as it is, as text and in parts."""
    return {
        "exists": explanation.exists,
        "state": explanation.state,
        "waits": list(explanation.waits),
        "conditions": [str(one) for one in explanation.conditions],
        "events": [str(one) for one in explanation.events],
        "syncs": [str(one) for one in explanation.syncs],
        "refused": [str(one) for one in explanation.refused],
        "text": str(explanation),
    }
