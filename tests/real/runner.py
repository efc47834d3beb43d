"""Runs cases side by side, each in a namespace of its own.

A case is a generator: it makes requests and yields what has to come true before it goes on. So the
whole battery takes about as long as its slowest case.
"""

from __future__ import annotations

import time
from collections.abc import Callable, Generator, Mapping
from dataclasses import dataclass, field

from kcm.testing.waiting import let_time_pass
from tests.real.client import Api, Space
from tests.real.kubelet import play_kubelets

PAUSE = 0.25  # seconds between looks at all cases, which cost the server a request each
Step = tuple[str, Callable[[], object]]
Case = Callable[[Space], Generator[Step, None, None]]


@dataclass
class Running:
    """A case that runs: what it waits for, and how it ended."""

    case: Generator[Step, None, None]
    deadline: float
    awaited: Step | None = None
    fault: str = ""
    passed: list[str] = field(default_factory=list)


def run_cases(api: Api, cases: Mapping[str, Case], within: float) -> Mapping[str, Running]:
    """Returns how the cases ended, by their names. A case without a fault has passed."""
    deadline = time.monotonic() + within
    running = {}
    for name, case in cases.items():
        space = Space(api, f"t-{name.replace('_', '-')}")
        api.create("/api/v1/namespaces", {"metadata": {"name": space.name}})
        running[name] = Running(_begin(case, space), deadline)
    active = dict(running)
    while active:
        play_kubelets(api)
        for name, each in list(active.items()):
            if _advance(each):
                del active[name]
        let_time_pass(PAUSE, "the controllers have to work")
    return running


def _begin(case: Case, space: Space) -> Generator[Step, None, None]:
    """Begins a case when pods can be created in its namespace."""
    yield "an account", lambda: space.get("v1/serviceaccounts", "default")
    yield from case(space)


def _advance(running: Running) -> bool:
    """Goes on with a case as far as it can. Reports whether it has ended."""
    try:
        while running.awaited is None or running.awaited[1]():
            if running.awaited is not None:
                running.passed.append(running.awaited[0])
            running.awaited = next(running.case)
    except StopIteration:
        return True
    except AssertionError as error:
        running.fault = str(error)
        return True
    if time.monotonic() > running.deadline:
        what = running.awaited[0]
        running.fault = f"did not happen: {what}; before: {', '.join(running.passed)}"
        return True
    return False
