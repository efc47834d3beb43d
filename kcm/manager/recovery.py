"""Recovers the deletions that the first list of a dispatcher without caches cannot show.

Guarantees: after `recover`, all keys that events since the stored position touch have been
collected, or will be by the informer. If the watch log no longer reaches back to there (410, new
epoch), all keys with persisted state are collected instead (design 0005).
"""

from __future__ import annotations

from collections.abc import Iterable

import structlog

from kcm.coordination.workqueue import Addition
from kcm.manager.context.context import ControllerContext
from kcm.manager.dispatch import KindDispatcher
from kcm.manager.positions import read_positions
from kcm.reconcile.contract import Change
from kcm.store import damage

log = structlog.get_logger("kcm.dispatch")


def recover(context: ControllerContext, kinds: Iterable[KindDispatcher]) -> bool:
    """Makes the dispatchers whose kinds have been listed since the last call enqueue the keys of
    all deletions since the stored positions, and reports whether there were any.
    """
    has_listed = context.caches.factory.has_listed  # not of a custom kind that has just gone
    listed = [each for each in kinds if not each.is_recovered and has_listed(each.resource)]
    positions = read_positions(context.io, [kind.resource for kind in listed])
    for kind in listed:
        if kind.resource in positions:
            _recover_since(context, kind, positions[kind.resource])
        kind.is_recovered = True
    return bool(listed)


def _recover_since(context: ControllerContext, kind: KindDispatcher, position: int) -> None:
    if context.clients.remote is not None:  # past changes of a remote store cannot be read
        note_persisted_keys(context, kind, 0)
        listed = context.caches.factory.position_of(kind.resource)
        if listed < position:
            kind.go_back(listed)
        return
    target = context.store.last_rvs([kind.resource])[kind.resource]
    while position < target:
        changes = context.store.read_changes({kind.resource: position}, 0)
        reached = changes.positions[kind.resource]
        if kind.resource in changes.gone or reached == position:  # trimmed or deleted
            note_persisted_keys(context, kind, target)
            return
        for change in changes.entries:
            if change.type == "DELETED":
                last = damage.decode_change(change)
                if last is None:  # it is not known which keys it touches
                    note_persisted_keys(context, kind, target)
                    continue
                kind.note(Change(last, None), change.resource_version)
        position = reached


def note_persisted_keys(context: ControllerContext, kind: KindDispatcher, version: int) -> None:
    """Makes the dispatcher enqueue every key that has persisted state in the kind's controllers.

    That is a failure count, a delay, a running sync or expectations. `version` is the
    resourceVersion of the last watch event whose keys are thereby enqueued.
    """
    for controller in kind.controllers():
        keys = _read_persisted_keys(context, controller.short_name)
        if keys:
            log.info(
                "every key with persisted state is added",
                queue=controller.short_name,
                keys=len(keys),
            )
            kind.note_additions([Addition(controller.short_name, tuple(sorted(keys)))], version)


def _read_persisted_keys(context: ControllerContext, queue: str) -> set[str]:
    io = context.io
    prefix = io.keys.expectations(queue, "")
    replies = io.pipeline(
        [
            ("HKEYS", io.keys.queue(queue, "failures")),
            ("ZRANGE", io.keys.queue(queue, "delayed"), 0, -1),
            ("HKEYS", io.keys.queue(queue, "running")),
        ]
    )
    own = {key.decode() for keys in replies for key in keys}
    return own | {key.removeprefix(prefix) for key in io.scan(prefix + "*")}
