"""The storage of one simulator: what it has seen, and what its CSI driver does about it."""

from __future__ import annotations

from collections.abc import Iterable, Sequence

from kcm.api.scheme import Resource
from kcm.redisio import Fence
from kcm.simulation.context import SimulatorContext
from kcm.simulation.storage.driver import SimulatedDriver
from kcm.simulation.storage.objects import cluster_objects
from kcm.simulation.storage.seen import ATTACHMENTS, CLAIMS, DRIVERS, VOLUMES, SeenStorage
from kcm.store.admission.ensuring import ensure_objects


class SimulatedVolumes:
    """Handles changes of storage. Not thread-safe. Times are seconds since 1970."""

    def __init__(self, context: SimulatorContext) -> None:
        self._store = context.store
        self._offers = context.options.count > 0
        self.seen = SeenStorage()
        self._driver = SimulatedDriver(context, self.seen)

    def offer(self) -> None:
        """Creates the driver's CSIDriver and StorageClass, unless they are there or there are no
        nodes.
        """
        if self._offers:
            ensure_objects(self._store, cluster_objects())

    def read(self, kind: Resource, objects: Sequence[tuple[str, bytes, int]]) -> None:
        """Remembers all objects of a kind, each with its key, JSON and resourceVersion."""
        self.seen.forget_missing(kind, (key for key, _, _ in objects))
        for key, raw, _ in objects:
            self.seen.put(kind, key, raw)

    def look_at_all(self, now: float, fence: Fence | None) -> None:
        """Begins what everything that was read asks of the driver. Raises Temporary, Fenced."""
        self._driver.look_at_all(now, fence)

    def handle_change(
        self, kind: Resource, key: str, raw: bytes | None, now: float, fence: Fence | None
    ) -> Iterable[str]:
        """Handles a written object, or a deleted one whose JSON is None.

        Returns the keys of claims whose pods may go on. Raises Temporary and Fenced.
        """
        attachment = self.seen.attachments.get(key) if kind is ATTACHMENTS else None
        if raw is None:
            self.seen.drop(kind, key)
        else:
            self.seen.put(kind, key, raw)
        if kind is CLAIMS:
            self._driver.look_at_claim(key, now)
            return (key,)
        if kind is VOLUMES:
            self._driver.look_at_volume(key, now, fence)
            volume = self.seen.volumes.get(key)
            return (volume.claim,) if volume is not None else ()
        if kind is ATTACHMENTS:
            self._driver.look_at_attachment(key, now, fence)
            if attachment is not None and raw is None:
                self._driver.look_at_volume(attachment.volume, now, fence)
        return tuple(self.seen.claims) if kind is DRIVERS else ()

    def end_calls(self, due: Iterable[str], now: float, fence: Fence | None) -> None:
        """Goes on with the driver's calls whose timers are due. Raises Temporary, Fenced."""
        self._driver.end_calls(due, now, fence)
