"""Keeps the APIServices of what this server serves itself: built-in versions and custom kinds.

Those of built-in versions are written once after the start, those of custom kinds' versions
whenever they differ. One that somebody took over, by removing the label, stays as it is. Every API
server does so: all want the same. It also says of each of them that it is available.

Source: staging/src/k8s.io/kube-aggregator/pkg/controllers/autoregister/autoregister_controller.go,
pkg/controlplane/controller/crdregistration/crdregistration_controller.go and apiServicesToRegister
in pkg/controlplane/apiserver/aggregator.go, Kubernetes 1.33. The groups of metrics are served
without an APIService, so that whoever installs a server for them can create it.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from contextlib import suppress
from enum import Enum

import structlog

from kcm import errors
from kcm.api import scheme
from kcm.api.apiextensions_v1 import CustomResourceDefinition
from kcm.api.apiregistration_v1 import (
    AUTOMANAGED,
    CONTINUOUSLY,
    LOCAL,
    ON_START,
    APIService,
    APIServiceSpec,
    find_condition,
    local_condition,
    name_of,
    with_condition,
)
from kcm.apimachinery.meta_v1 import ObjectMeta
from kcm.apiserver import computed_kinds
from kcm.apiserver.cache.cacher import Cacher
from kcm.apiserver.documents.priorities import BUILT_IN, CUSTOM, Priority
from kcm.clock import Clock
from kcm.store import DeleteOptions, Store, Subresource, WriteItem, WriteStatus

log = structlog.get_logger("kcm.apiserver")

_RESOURCE = APIService.resource


class Action(Enum):
    """What to do about an APIService."""

    NOTHING = "nothing"
    CREATE = "create"
    UPDATE = "update"
    DELETE = "delete"


def decide(
    present: APIService | None, wanted: APIService | None, *, synced: bool, at_start: bool
) -> Action:
    """Returns the action that makes an APIService what this server wants. None means absent.

    `synced` says whether this server has already synced it, `at_start` whether it existed when this
    server started.
    """
    if present is None and wanted is None:
        return Action.NOTHING
    if _managed(wanted) == ON_START and synced:
        return Action.NOTHING
    if present is None:
        return Action.CREATE
    how = _managed(present)
    if how not in {ON_START, CONTINUOUSLY} or (how == ON_START and (synced or not at_start)):
        return Action.NOTHING
    if wanted is None:
        return Action.DELETE
    return Action.NOTHING if present.spec == wanted.spec else Action.UPDATE


def _managed(service: APIService | None) -> str:
    return service.labels.get(AUTOMANAGED, "") if service is not None else ""


def build(group: str, version: str, priority: Priority, how: str) -> APIService:
    """Returns the APIService of a version that this server serves itself."""
    return APIService(
        metadata=ObjectMeta(name=name_of(group, version), labels={AUTOMANAGED: how}),
        spec=APIServiceSpec(
            group=group or None,
            version=version,
            group_priority_minimum=priority.group,
            version_priority=priority.version,
        ),
    )


def list_built_in() -> dict[str, APIService]:
    """Returns the APIServices of the built-in versions by name."""
    served = {(r.group, r.version) for r in (*scheme.BUILT_IN.served(), *computed_kinds.REVIEWS)}
    return {
        name_of(*version): build(*version, priority, ON_START)
        for version, priority in BUILT_IN.items()
        if version in served
    }


def list_custom(definitions: Iterable[CustomResourceDefinition]) -> dict[str, APIService]:
    """Returns the APIServices of the versions of custom kinds by name."""
    versions = {
        (definition.spec.group, version.name)
        for definition in definitions
        for version in definition.spec.versions
        if version.served
    }
    return {
        name_of(*version): build(*version, CUSTOM, CONTINUOUSLY)
        for version in sorted(versions)
        if version not in BUILT_IN
    }


class Registration:
    """Writes the APIServices. `turn` checks all of them; one thread calls it."""

    def __init__(self, store: Store, cacher: Cacher, clock: Clock | None = None) -> None:
        self._store = store
        self._clock = clock or store.clock
        self._cacher = cacher
        self._synced: set[str] = set()
        self._at_start: frozenset[str] | None = None
        self._data_id = ""
        self._seen: tuple[int, ...] = ()

    def turn(self) -> None:
        """Creates, corrects and deletes APIServices, if anything changed. Raises StoreUnavailable.

        A store that was emptied is like a start.
        """
        if (data_id := self._store.data_id) != self._data_id:
            self._synced, self._at_start, self._data_id = set(), None, data_id
            self._seen = ()
        sources = [
            self._cacher.cache(model.resource) for model in (APIService, CustomResourceDefinition)
        ]
        for source in sources:
            self._cacher.wait_until_filled(source.resource)
        now = tuple(source.generation for source in sources)
        if now == self._seen:
            return
        present = {e.obj.name: e.obj for e in sources[0].entries() if isinstance(e.obj, APIService)}
        # Those whose names were judged, so that the APIService always comes after the judgement.
        definitions = [
            e.obj
            for e in sources[1].entries()
            if isinstance(e.obj, CustomResourceDefinition) and e.obj.status.conditions
        ]
        if self._at_start is None:
            self._at_start = frozenset(present)
        self._sync(present, list_custom(definitions) | list_built_in())
        self._seen = now

    def _sync(self, present: Mapping[str, APIService], wanted: Mapping[str, APIService]) -> None:
        """Sees to every APIService. One that cannot be written is tried again after a change."""
        missing: list[WriteItem] = []
        for name in sorted({*present, *wanted}):
            old, new = present.get(name), wanted.get(name)
            at_start = name in (self._at_start or ())
            action = decide(old, new, synced=name in self._synced, at_start=at_start)
            try:
                if action is Action.CREATE and new is not None:
                    missing.append(self._build_create(new))
                    continue
                self._act(action, name, old, new)
                if old is not None and action is not Action.DELETE:
                    self._mark_local(old)
            except errors.Temporary:
                raise
            except errors.ApiError as error:  # the others need not wait
                log.warning("An APIService cannot be written", name=name, error=error.message)
            else:
                self._synced.add(name)
        self._create(missing)
        self._synced &= {*present, *wanted}

    def _build_create(self, service: APIService) -> WriteItem:
        available = with_condition(service, local_condition(self._clock.now()))
        return self._store.items.build_create(available, keep_status=True)

    def _create(self, missing: Sequence[WriteItem]) -> None:
        """Creates APIServices. Another server may be faster, and the watch shows what it did."""
        for result in self._store.write(missing) if missing else ():
            name = result.item.obj.name
            if result.ok or result.status is WriteStatus.EXISTS:
                self._synced.add(name)
            else:
                error = result.error()
                log.warning("An APIService cannot be written", name=name, error=str(error))

    def _act(
        self, action: Action, name: str, old: APIService | None, new: APIService | None
    ) -> None:
        try:
            if action is Action.UPDATE and new is not None:
                self._store.modify(_RESOURCE, name, lambda stored: _corrected(stored, new))
            elif action is Action.DELETE and old is not None:
                self._store.delete(_RESOURCE, name, DeleteOptions(uid=old.uid))
        except (errors.NotFound, errors.Conflict):
            return  # another server was faster, and the watch shows what it did

    def _mark_local(self, service: APIService) -> None:
        """Says that an API which this server serves itself is available, if its status does not."""

        def change(old: APIService) -> APIService:
            if old.spec.service is not None:
                return old
            return with_condition(old, local_condition(self._clock.now()))

        condition = find_condition(service)
        is_marked = condition is not None and (condition.status, condition.reason) == LOCAL
        if service.spec.service is not None or is_marked:
            return
        with suppress(errors.NotFound, errors.Conflict):
            self._store.modify(_RESOURCE, service.name, change, subresource=Subresource.STATUS)


def _corrected(stored: APIService, wanted: APIService) -> APIService:
    if _managed(stored) not in {ON_START, CONTINUOUSLY}:
        return stored
    return stored.with_spec(wanted.spec)
