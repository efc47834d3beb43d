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
    from kcm.testing.control_plane.plane import ControlPlane as ControlPlane
    from kcm.testing.control_plane.rest import Pending as Pending
    from kcm.testing.control_plane.rest import Rest as Rest
    from kcm.testing.control_plane.rest import UnsettledError as UnsettledError
    from kcm.testing.control_plane.timing import Timekeeper as Timekeeper
    from kcm.testing.history.explanation import Explanation as Explanation
    from kcm.testing.history.writes import History as History
    from kcm.testing.history.writes import Write as Write

__all__ = [
    "ApiError",
    "ControlPlane",
    "Explanation",
    "History",
    "Pending",
    "Rest",
    "Timekeeper",
    "UnsettledError",
    "Write",
]

_PLACES = {
    "ApiError": "kcm.testing.control_plane.objects",
    "ControlPlane": "kcm.testing.control_plane.plane",
    "Pending": "kcm.testing.control_plane.rest",
    "Rest": "kcm.testing.control_plane.rest",
    "Timekeeper": "kcm.testing.control_plane.timing",
    "UnsettledError": "kcm.testing.control_plane.rest",
    "Explanation": "kcm.testing.history.explanation",
    "History": "kcm.testing.history.writes",
    "Write": "kcm.testing.history.writes",
}


def __getattr__(name: str) -> Any:
    """Imports a public name when it is first used: a control plane is most of kcm."""
    if name not in _PLACES:
        raise AttributeError(f"module {__name__!r} has no attribute {name!r}")
    from importlib import import_module  # noqa: PLC0415 - see above

    return getattr(import_module(_PLACES[name]), name)
