"""Support for tests: a whole control plane, and the parts with which one controller is tested.

`ControlPlane` runs an API server, every controller, a scheduler and simulated nodes inside the
test's process (docs/testing-operators.md), and tells what happened in it: `History`, `Write`,
`Explanation` (docs/testing-history.md). The plugin `kcm.testing.plugin` gives pytest the
fixtures `kcm` and `kcm_namespace`.

For a controller of kcm itself, `builders` builds objects with sensible defaults. `views.FakeView`
is what a controller sees, and `world.World` a store in memory that carries out plans, both without
Redis: a test passes objects in, and compares the plan that comes out. `clock.FakeClock` is stepped
by the test, and `waiting` waits for other threads and processes. See docs/writing-a-controller.md.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from kcm.testing.control_plane.objects import ApiError as ApiError
    from kcm.testing.control_plane.objects import Manifest as Manifest
    from kcm.testing.control_plane.plane import ControlPlane as ControlPlane
    from kcm.testing.control_plane.rest import Pending as Pending
    from kcm.testing.control_plane.rest import Rest as Rest
    from kcm.testing.control_plane.rest import UnsettledError as UnsettledError
    from kcm.testing.control_plane.timing import Duration as Duration
    from kcm.testing.control_plane.timing import Timekeeper as Timekeeper
    from kcm.testing.faults.answers import ErrorCode as ErrorCode
    from kcm.testing.faults.chaos import Chaos as Chaos
    from kcm.testing.faults.chaos import ChaosEntry as ChaosEntry
    from kcm.testing.faults.deeds import ChaosKind as ChaosKind
    from kcm.testing.faults.fault import Fault as Fault
    from kcm.testing.faults.fault import Hit as Hit
    from kcm.testing.faults.faults import Faults as Faults
    from kcm.testing.faults.nodes import FaultyNode as FaultyNode
    from kcm.testing.faults.nodes import Nodes as Nodes
    from kcm.testing.faults.pods import FaultyPod as FaultyPod
    from kcm.testing.faults.pods import Pods as Pods
    from kcm.testing.faults.target import Verb as Verb
    from kcm.testing.history.explanation import Explanation as Explanation
    from kcm.testing.history.invariants import Invariant as Invariant
    from kcm.testing.history.writes import History as History
    from kcm.testing.history.writes import Write as Write

_PLACES = {
    "ApiError": "kcm.testing.control_plane.objects",
    "Chaos": "kcm.testing.faults.chaos",
    "ChaosEntry": "kcm.testing.faults.chaos",
    "ChaosKind": "kcm.testing.faults.deeds",
    "ControlPlane": "kcm.testing.control_plane.plane",
    "Duration": "kcm.testing.control_plane.timing",
    "ErrorCode": "kcm.testing.faults.answers",
    "Explanation": "kcm.testing.history.explanation",
    "Fault": "kcm.testing.faults.fault",
    "Faults": "kcm.testing.faults.faults",
    "FaultyNode": "kcm.testing.faults.nodes",
    "FaultyPod": "kcm.testing.faults.pods",
    "History": "kcm.testing.history.writes",
    "Hit": "kcm.testing.faults.fault",
    "Invariant": "kcm.testing.history.invariants",
    "Manifest": "kcm.testing.control_plane.objects",
    "Nodes": "kcm.testing.faults.nodes",
    "Pending": "kcm.testing.control_plane.rest",
    "Pods": "kcm.testing.faults.pods",
    "Rest": "kcm.testing.control_plane.rest",
    "Timekeeper": "kcm.testing.control_plane.timing",
    "UnsettledError": "kcm.testing.control_plane.rest",
    "Verb": "kcm.testing.faults.target",
    "Write": "kcm.testing.history.writes",
}

__all__ = [  # as a list, which type checkers and the reference can read
    "ApiError",
    "Chaos",
    "ChaosEntry",
    "ChaosKind",
    "ControlPlane",
    "Duration",
    "ErrorCode",
    "Explanation",
    "Fault",
    "Faults",
    "FaultyNode",
    "FaultyPod",
    "History",
    "Hit",
    "Invariant",
    "Manifest",
    "Nodes",
    "Pending",
    "Pods",
    "Rest",
    "Timekeeper",
    "UnsettledError",
    "Verb",
    "Write",
]


def __getattr__(name: str) -> Any:
    """Imports a public name when it is first used: a control plane is most of kcm."""
    if name not in _PLACES:
        raise AttributeError(f"module {__name__!r} has no attribute {name!r}")
    from importlib import import_module  # noqa: PLC0415 - see above

    return getattr(import_module(_PLACES[name]), name)
