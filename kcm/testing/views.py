"""A fake view of plain objects, for tests of `reconcile`: objects in, plan out."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from datetime import datetime, timedelta
from typing import TypeVar, cast

from kcm.api.scheme import BUILT_IN, Kinds
from kcm.apimachinery.base import compact
from kcm.apimachinery.meta_v1 import KubeObject
from kcm.reconcile.contract import Controller, Lister, Metrics
from kcm.reconcile.passes import ListedObjects
from kcm.testing.builders import START

T = TypeVar("T", bound=KubeObject)

NOW = START + timedelta(hours=1)
"""The default time of a view: an hour after all objects were created."""


class FakeView:
    """Shows the given objects at the given time to a controller. From then on they are read-only.

    If `controller` is given, only the kinds that it declares can be read, and there is memory only
    if it remembers.
    """

    def __init__(
        self,
        *objects: KubeObject,
        now: datetime = NOW,
        controller: Controller | None = None,
        moment: float | None = None,
        epoch: str = "0",
        memory: Mapping[str, str] | None = None,
        position: int = 1,
        metrics: Metrics | None = None,
        scheme: Kinds = BUILT_IN,
    ) -> None:
        self._now = now
        self.scheme = scheme
        self._metrics = metrics
        self._memory = memory if memory and (controller is None or controller.remembers) else {}
        self._position = position
        self.moment = now.timestamp() if moment is None else moment
        self.epoch = epoch
        self._objects: dict[str, list[KubeObject]] = {}
        self._allowed = None if controller is None else _list_declared(controller, scheme)
        for obj in objects:
            self._objects.setdefault(obj.resource.name, []).append(compact(obj))

    @property
    def now(self) -> datetime:
        return self._now

    @property
    def memory(self) -> Mapping[str, str]:
        return self._memory

    @property
    def metrics(self) -> Metrics:
        assert self._metrics is not None
        return self._metrics

    def position(self, model: type[T]) -> int:
        return self._position

    def by_index(self, name: str, value: str) -> Sequence[KubeObject]:
        kinds = [
            resource
            for resource in self.scheme.resources()
            if self._allowed is None or resource.name in self._allowed
        ]
        return [obj for kind in kinds for obj in self.lister(kind.model).by_index(name, value)]

    def lister(self, model: type[T]) -> Lister[T]:
        resource = model.resource
        if self._allowed is not None and resource.name not in self._allowed:
            raise LookupError(f"{model.__name__} is not declared in what this controller reads")
        objects = cast("list[T]", self._objects.get(resource.name, []))
        return ListedObjects(sorted(objects, key=lambda obj: obj.key), resource)


def _list_declared(controller: Controller, scheme: Kinds) -> set[str]:
    models = {*controller.reads, *(m for tick in controller.ticks() for m, _ in tick.lists)}
    if controller.reads_scales:
        models.update(resource.model for resource in scheme.resources() if resource.scale)
    for watch in controller.watches():
        every = (resource.model for resource in scheme.resources() if resource.name != "events")
        models.update(every if watch.model is None else (watch.model,))
    return {model.resource.name for model in models}
