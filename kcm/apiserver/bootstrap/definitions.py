"""The loop that accepts the names of CustomResourceDefinitions and cleans up after them.

A new definition is handled at once. One that is being deleted is removed when the last of its
objects is gone. Every API server runs the loop. Several do no harm, since each write applies to the
version of the definition that was read.

Why it runs here and not in the workers is in
docs/designs/0014-definitions-settle-in-the-api-server.md. Source:
staging/src/k8s.io/apiextensions-apiserver/pkg/controller/{status,establish,finalizer}, Kubernetes
1.33.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence

import structlog

from kcm import errors
from kcm.api.apiextensions_v1 import CustomResourceDefinition
from kcm.api.custom.kinds import CustomResource
from kcm.api.scheme import Resource
from kcm.apiextensions import conditions
from kcm.apiserver.cache.cacher import Cacher
from kcm.apiserver.cache.watch_cache import CacheWatcher
from kcm.clock import Clock
from kcm.loops import Loop, Turn
from kcm.store import DeleteOptions, Store, Subresource

log = structlog.get_logger("kcm.apiserver")

Change = Callable[[CustomResourceDefinition], CustomResourceDefinition]

IDLE = 30.0  # seconds between passes if nothing changes
CLEANING = 0.3  # seconds between passes while definitions are being deleted
RETRY = 1.0  # seconds between attempts while the store is unavailable
_PAGE = 500

_State = tuple[str, str | None]  # UID and resourceVersion


class DefinitionLoop(Loop):
    """Accepts the names of CustomResourceDefinitions, and removes deleted definitions."""

    def __init__(self, store: Store, cacher: Cacher, clock: Clock | None = None) -> None:
        super().__init__("kcm-definitions")
        self._store = store
        self._cacher = cacher
        self._clock = clock or store.clock
        self._resource = CustomResourceDefinition.resource
        self._watcher: CacheWatcher | None = None
        # Definitions whose names are all accepted, which no other can take. They are not
        # handled again.
        self._settled: set[_State] = set()

    def _subscribe(self) -> None:
        cache = self._cacher.cache(self._resource)
        if self._watcher is None or self._watcher.ended:
            _, self._watcher = cache.subscribe(None, "", self.wake)
        self._watcher.pending.clear()  # each pass handles every definition

    def turn(self, patience: float) -> Turn:
        """Handles every definition once."""
        self._subscribe()
        definitions = self._definitions()
        for definition in definitions:
            if not definition.deleting:
                self._settle(definition, definitions)
        self._settled &= {_state(definition) for definition in definitions}
        going = [d for d in definitions if d.deleting and conditions.CLEANUP in _finalizers(d)]
        for definition in going:
            self._clean(definition)
        return Turn(upkeep_in=CLEANING if going else IDLE)

    def _definitions(self) -> list[CustomResourceDefinition]:
        entries = self._cacher.cache(self._resource).entries()
        return [e.obj for e in entries if isinstance(e.obj, CustomResourceDefinition)]

    def _settle(
        self, definition: CustomResourceDefinition, others: Sequence[CustomResourceDefinition]
    ) -> None:
        """Writes the conditions and accepted names of a definition, unless they are up to date."""
        if _state(definition) in self._settled:
            return
        now = self._clock.now()
        wanted = conditions.settle(definition, others, now)
        if wanted is definition:
            if conditions.is_settled(definition):
                self._settled.add(_state(definition))
            return

        def change(old: CustomResourceDefinition) -> CustomResourceDefinition:
            return wanted if _state(old) == _state(definition) else old

        self._write(definition, change, Subresource.STATUS)

    def _clean(self, definition: CustomResourceDefinition) -> None:
        """Deletes the objects of a definition that is being deleted, and then its finalizer.

        No object can be added meanwhile: a create is guarded by a definition that is not being
        deleted.
        """
        now = self._clock.now()
        left = self._delete_objects(definition) if self._is_served(definition) else 0

        def change(old: CustomResourceDefinition) -> CustomResourceDefinition:
            return conditions.mark_terminating(old, now, left=left)

        self._write(definition, change, Subresource.STATUS)
        if not left:
            self._write(definition, change)

    def _is_served(self, definition: CustomResourceDefinition) -> bool:
        # Nothing was ever stored for a definition that took the name of a built-in kind.
        versions = self._store.scheme.versions(definition.name)
        return any(isinstance(version, CustomResource) for version in versions)

    def _delete_objects(self, definition: CustomResourceDefinition) -> int:
        """Deletes all objects of a definition's kind. Returns how many are left."""
        resource = self._store.scheme.by_name(definition.name)
        for page in self._store.raw_pages(resource, size=_PAGE):
            for key, raw in page:
                if raw:
                    self._delete(resource, key)
        return self._store.count(resource)

    def _delete(self, resource: Resource, key: str) -> None:
        try:
            self._store.delete(resource, key, DeleteOptions())
        except (errors.NotFound, errors.Conflict):
            return

    def _write(
        self,
        definition: CustomResourceDefinition,
        change: Change,
        subresource: Subresource = Subresource.NONE,
    ) -> None:
        try:
            self._store.modify(self._resource, definition.key, change, subresource=subresource)
        except errors.NotFound:
            return
        except errors.Conflict:
            self.wake()


def _state(definition: CustomResourceDefinition) -> _State:
    return definition.uid, definition.metadata.resource_version


def _finalizers(definition: CustomResourceDefinition) -> Sequence[str]:
    return definition.metadata.finalizers or ()
