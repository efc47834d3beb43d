"""The loop that accepts the names of CustomResourceDefinitions and cleans up after them.

Guarantees: a definition that is written is settled at once. One that is being deleted goes when the
last of its objects is gone. Every API server runs the loop; several do no harm, since each write
holds only for the version that was looked at.

It runs here and not in the workers for the reasons in
docs/designs/0014-definitions-settle-in-the-api-server.md. Source:
staging/src/k8s.io/apiextensions-apiserver/pkg/controller/{status,establish,finalizer}, Kubernetes
1.33.
"""

from __future__ import annotations

import threading
from collections.abc import Callable, Sequence

import structlog

from kcm import errors
from kcm.api import scheme
from kcm.api.apiextensions_v1 import CustomResourceDefinition
from kcm.api.scheme import Resource
from kcm.apiextensions import conditions
from kcm.apimachinery.meta_v1 import KubeObject
from kcm.apiserver.cache.cacher import Cacher
from kcm.apiserver.cache.watch_cache import CacheWatcher
from kcm.clock import Clock, RealClock
from kcm.store import DeleteOptions, Store, Subresource

log = structlog.get_logger("kcm.apiserver")

Change = Callable[[KubeObject], KubeObject]

IDLE = 30.0  # seconds until everything is looked at again, changed or not
CLEANING = 0.3  # seconds between looks at the objects of definitions that are being deleted
RETRY = 1.0  # seconds, while the store is away
_PAGE = 500

_State = tuple[str, str | None]  # UID and resourceVersion


class DefinitionLoop:
    """Settles definitions. `start` runs it in a thread, and `turn` looks once at all of them."""

    def __init__(self, store: Store, cacher: Cacher, clock: Clock | None = None) -> None:
        self._store = store
        self._cacher = cacher
        self._clock = clock or RealClock()
        self._resource = scheme.resource_of(CustomResourceDefinition)
        self._wake = threading.Event()
        self._stop = threading.Event()
        self._thread: threading.Thread | None = None
        self._watcher: CacheWatcher | None = None
        # Definitions that have all their names, which nobody can take: they are not looked at
        # again.
        self._settled: set[_State] = set()

    def start(self) -> None:
        """Starts the thread."""
        self._thread = threading.Thread(target=self._run, name="kcm-definitions", daemon=True)
        self._thread.start()

    def stop(self) -> None:
        """Ends the thread."""
        self._stop.set()
        self._wake.set()
        if self._thread is not None:
            self._thread.join(5)

    def _run(self) -> None:
        while not self._stop.is_set():
            try:
                self._subscribe()
                pause = self.turn()
            except errors.Temporary as error:
                log.warning("Definitions cannot be settled", error=error.message)
                pause = RETRY
            except Exception:  # if the thread ended, every new kind would stay unserved
                log.exception("Settling definitions failed, it goes on")
                pause = RETRY
            self._clock.wait(self._wake, pause)

    def _subscribe(self) -> None:
        self._wake.clear()
        cache = self._cacher.cache(self._resource)
        if self._watcher is None or self._watcher.ended:
            _, self._watcher = cache.subscribe(None, "", self._wake.set)
        self._watcher.pending.clear()  # each look is at everything

    def turn(self) -> float:
        """Looks at every definition, and returns for how many seconds there is nothing
        more to do.
        """
        definitions = self._definitions()
        for definition in definitions:
            if not definition.deleting:
                self._settle(definition, definitions)
        self._settled &= {_state(definition) for definition in definitions}
        going = [d for d in definitions if d.deleting and conditions.CLEANUP in _finalizers(d)]
        for definition in going:
            self._clean(definition)
        return CLEANING if going else IDLE

    def _definitions(self) -> list[CustomResourceDefinition]:
        entries = self._cacher.cache(self._resource).entries()
        return [e.obj for e in entries if isinstance(e.obj, CustomResourceDefinition)]

    def _settle(
        self, definition: CustomResourceDefinition, others: Sequence[CustomResourceDefinition]
    ) -> None:
        if _state(definition) in self._settled:
            return
        now = self._clock.now()
        wanted = conditions.settle(definition, others, now)
        if wanted is definition:
            if conditions.is_settled(definition):
                self._settled.add(_state(definition))
            return

        def change(old: KubeObject) -> KubeObject:
            assert isinstance(old, CustomResourceDefinition)
            return wanted if _state(old) == _state(definition) else old

        self._write(definition, change, Subresource.STATUS)

    def _clean(self, definition: CustomResourceDefinition) -> None:
        """Deletes the objects of a definition that is being deleted, and then lets it go.

        No object can be added meanwhile: its creation depends on a definition that stays.
        """
        now = self._clock.now()
        left = self._delete_objects(definition) if self._is_served(definition) else 0

        def change(old: KubeObject) -> KubeObject:
            assert isinstance(old, CustomResourceDefinition)
            return conditions.mark_terminating(old, now, left=left)

        self._write(definition, change, Subresource.STATUS)
        if not left:
            self._write(definition, change)

    @staticmethod
    def _is_served(definition: CustomResourceDefinition) -> bool:
        # Nothing was ever stored for a definition that took the name of a built-in kind.
        return any(version.custom is not None for version in scheme.versions(definition.name))

    def _delete_objects(self, definition: CustomResourceDefinition) -> int:
        resource, after = scheme.by_name(definition.name), ""
        while page := self._store.raw_page(resource, None, after, _PAGE):
            for key, raw in page:
                if raw:
                    self._delete(resource, key)
            after = page[-1][0]
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
            self._wake.set()


def _state(definition: CustomResourceDefinition) -> _State:
    return definition.uid, definition.metadata.resource_version


def _finalizers(definition: CustomResourceDefinition) -> Sequence[str]:
    return definition.metadata.finalizers or ()
