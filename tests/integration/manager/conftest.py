"""A manager whose only controller records its calls."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping
from dataclasses import replace
from typing import ClassVar

import pytest

from kcm.api.apps_v1 import ReplicaSet
from kcm.api.core_v1 import Pod
from kcm.manager.context.context import ControllerContext, build_context
from kcm.reconcile.contract import Change, Controller, Tick, View, Watch, own_key
from kcm.reconcile.plan import PassPlan
from kcm.redisio import RedisIO
from kcm.settings import Settings


class Recording(Controller):
    """Enqueues ReplicaSets by their own key, and by the `for` label of pods."""

    name: ClassVar[str] = "recording-controller"
    short_name: ClassVar[str] = "recording"
    passes: ClassVar[list[Mapping[str, str]]] = []

    def watches(self) -> tuple[Watch, ...]:
        return (Watch(ReplicaSet, own_key), Watch(Pod, self._by_label))

    def _by_label(self, change: Change, view: View) -> Iterable[str]:
        for obj in (change.old, change.new):
            if obj is not None and "crash" in obj.labels:
                raise ValueError("a bug in a handler")
            if obj is not None and "for" in obj.labels:
                yield f"{obj.namespace}/{obj.labels['for']}"

    def ticks(self) -> tuple[Tick, ...]:
        return (Tick("recording", 20.0, self._pass),)

    def _pass(self, view: View, state: Mapping[str, str]) -> PassPlan:
        self.passes.append(dict(state))
        return PassPlan(state={"passes": str(int(state.get("passes", "0")) + 1)})


@pytest.fixture
def context(io: RedisIO, settings: Settings) -> Iterator[ControllerContext]:
    """Gives a context with the recording controller, not started."""
    Recording.passes.clear()
    context = build_context(settings)
    context.selection = replace(context.selection, started=(Recording(),))
    yield context
    context.shutdown()
