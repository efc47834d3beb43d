"""The event bus: any program injects changes, and only valid ones are applied (design 0021).

`XADD kcm:events '*' type ADDED object '{...}'`; types are ADDED (create), MODIFIED (replace, with
the status if the object has one), DELETED, and APPLY (create, or a three-way merge by the
last-applied annotation).

Guarantees: an event is applied, acknowledged and removed in one atomic step, or moved to the dead
letters with the reason. After a crash it is repeated with the same call id, so it takes effect
once. Events of one object take effect in the order of the stream.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from itertools import islice
from typing import Any

from kcm import errors
from kcm.api import codec
from kcm.api.scheme import Scheme
from kcm.apimachinery.meta_v1 import KubeObject
from kcm.redisio import Fence
from kcm.redisio.scripts import NO_FENCE
from kcm.store.apply import annotate_last_applied, drop_version, merge_applied
from kcm.store.definitions import Definitions
from kcm.store.options import DeleteOptions
from kcm.store.store import Store
from kcm.store.writes.items import WriteItem, WriteStatus
from kcm.store.writes.writer import Acknowledgement

GROUP = "kcm"
DEAD_LETTERS = 10_000  # the most that are kept; the oldest are removed first
TYPES = ("ADDED", "MODIFIED", "DELETED", "APPLY")
_DEAD_FIELDS = 1000  # the most fields kept of one event; Lua can unpack some thousands only
_ATTEMPTS = 20  # the most attempts when other writes come in between

Fields = Mapping[bytes, bytes]


@dataclass(frozen=True)
class DeadLetter:
    """An injected event that was refused, with the reason and its own fields."""

    id: str
    reason: str
    message: str
    source_id: str
    fields: dict[str, str]


class EventBus:
    """Applies, refuses and replays injected events."""

    def __init__(self, store: Store) -> None:
        self._io = store.io
        self._keys = store.io.keys
        self._store = store
        self._definitions = Definitions(store)

    def ensure_group(self) -> None:
        """Creates the stream and its consumer group if they are missing.

        Raises: StoreUnavailable.
        """
        try:
            self._io.execute("XGROUP CREATE", self._keys.events(), GROUP, "0", "MKSTREAM")
        except errors.KcmError as error:
            if "BUSYGROUP" not in error.message:
                raise

    def read(
        self, consumer: str, block_ms: int | None, count: int = 100
    ) -> list[tuple[str, Fields]]:
        """Returns up to `count` entries, after a wait of up to `block_ms` milliseconds,
        None for no wait.

        Entries that were delivered and not finished come first, whichever consumer read them.
        """
        pending = self._claim(consumer, count)
        if pending:
            return pending
        wait: tuple[str | int, ...] = () if block_ms is None else ("BLOCK", block_ms)
        reply = self._io.execute(
            "XREADGROUP", "GROUP", GROUP, consumer, "COUNT", count, *wait,
            "STREAMS", self._keys.events(), ">",
        )  # fmt: skip
        return _entries(reply[0][1]) if reply else []

    def _claim(self, consumer: str, count: int) -> list[tuple[str, Fields]]:
        # Only one ingester holds the lease, so it takes over all pending entries.
        reply = self._io.execute(
            "XAUTOCLAIM", self._keys.events(), GROUP, consumer, 0, "0-0", "COUNT", count
        )
        deleted = reply[2] if len(reply) > 2 else []
        if deleted:
            self._io.execute("XACK", self._keys.events(), GROUP, *deleted)
        return _entries(reply[1])

    def process(self, entry_id: str, fields: Fields, fence: Fence | None = None) -> str:
        """Applies or refuses one entry, and returns "applied" or the reason of the refusal.

        Raises: Temporary (the entry stays pending), Fenced.
        """
        try:
            self._apply(entry_id, fields, fence)
        except (errors.Temporary, errors.Fenced):
            raise
        except errors.ApiError as error:
            self._refuse(entry_id, fields, error.reason, error.message, fence)
            return error.reason
        except Exception as error:  # noqa: BLE001 - one bad event must not stop the later ones
            message = f"{type(error).__name__}: {error}"
            self._refuse(entry_id, fields, "InternalError", message, fence)
            return "InternalError"
        return "applied"

    def _apply(self, entry_id: str, fields: Fields, fence: Fence | None) -> None:
        """Makes the write of an entry, again if another client wrote the object first."""
        self._definitions.refresh()
        event, obj = _parse(fields, self._store.scheme)
        for attempt in range(_ATTEMPTS):
            item = self._item(event, obj)
            if item is None:
                self._acknowledge(entry_id, fence)
                return
            results = self._store.write(
                [item],
                fence=fence,
                acknowledge=Acknowledgement(self._keys.events(), GROUP, entry_id),
                call_id=f"event-{entry_id}-{attempt}",
            )
            # Only a Service has a guard here, on the address that it gets; the next attempt draws
            # another address.
            if results[0].status not in (WriteStatus.CONFLICT, WriteStatus.GUARD):
                results[0].get_stored()
                return
        raise errors.Conflict.of(event, obj.key)

    def _acknowledge(self, entry_id: str, fence: Fence | None) -> None:
        fenced = fence.args() if fence else NO_FENCE
        self._io.call("event_skip", *fenced, self._keys.events(), GROUP, entry_id)

    def _item(self, event: str, obj: KubeObject) -> WriteItem | None:
        """Returns the write of an injected event, or None if nothing changes."""
        resource = obj.resource
        if resource.namespaced and not obj.namespace:
            obj = obj.with_metadata(namespace="default")
        if event == "ADDED":
            return self._creation(obj)
        try:
            old = self._store.get(resource, obj.key)
        except errors.NotFound:
            if event != "APPLY":
                raise
            return self._creation(annotate_last_applied(obj))
        if event == "DELETED":
            return self._store.build_delete(old, DeleteOptions(uid=obj.uid or ""))
        if event == "APPLY":
            return self._store.build_update(merge_applied(obj, old), old)
        return self._store.items.build_update(drop_version(obj), old, keep_status=True)

    def _creation(self, obj: KubeObject) -> WriteItem:
        keep = "status" in obj.model_fields_set
        return self._store.items.build_create(drop_version(obj), keep_status=keep)

    def _refuse(
        self, entry_id: str, fields: Fields, reason: str, message: str, fence: Fence | None
    ) -> None:
        """Moves an entry to the dead letters. Raises: Fenced, Temporary."""
        letter = {"reason": reason, "message": message, "source": entry_id}
        flat: list[str | bytes] = [part for pair in letter.items() for part in pair]
        for name, value in islice(fields.items(), _DEAD_FIELDS):
            flat += [b"field." + name, value]
        reply = self._io.call(
            "event_refuse", *(fence.args() if fence else NO_FENCE), self._keys.events(), GROUP,
            entry_id, self._keys.dead_events(), DEAD_LETTERS, self._keys.event_stats(), *flat,
            call_id=f"refuse-{entry_id}",
        )  # fmt: skip
        if reply[0] == "FENCED":
            raise errors.Fenced

    def list_dead_letters(self, count: int = 100) -> list[DeadLetter]:
        """Returns up to `count` dead letters, the newest first."""
        return [
            _letter(entry_id, fields)
            for entry_id, fields in _entries(
                self._io.execute("XREVRANGE", self._keys.dead_events(), "+", "-", "COUNT", count)
            )
        ]

    def replay(self, *ids: str) -> int:
        """Moves dead letters back into the stream, all or those with these ids. Returns their
        number.
        """
        replayed = 0
        for letter in reversed(self.list_dead_letters(DEAD_LETTERS)):
            if ids and letter.id not in ids:
                continue
            reply = self._io.call(
                "event_replay", self._keys.dead_events(), letter.id, self._keys.events()
            )
            replayed += int(reply[1])
        return replayed


def _parse(fields: Fields, scheme: Scheme) -> tuple[str, KubeObject]:
    """Returns the type and the object of an injected event. Raises: BadRequest."""
    try:
        event = fields[b"type"].decode("ascii")
        body = fields[b"object"]
    except KeyError as error:
        missing = error.args[0].decode()
        raise errors.BadRequest(
            f"field {missing!r} is missing: XADD kcm:events '*' type ADDED object '{{...}}'"
        ) from error
    except UnicodeDecodeError as error:
        raise errors.BadRequest("field 'type' is not text") from error
    if event not in TYPES:
        raise errors.BadRequest(f"type {event!r} is not one of {', '.join(TYPES)}")
    return event, codec.decode(body, scheme, strict=True)


def _entries(reply: Any) -> list[tuple[str, Fields]]:
    return [(entry_id.decode(), fields or {}) for entry_id, fields in reply or ()]


def _letter(entry_id: str, fields: Fields) -> DeadLetter:
    texts = {
        name.decode("utf-8", "replace"): value.decode("utf-8", "replace")
        for name, value in fields.items()
    }
    own = {n.removeprefix("field."): v for n, v in texts.items() if n.startswith("field.")}
    reason, message = texts.get("reason", "Unknown"), texts.get("message", "")
    return DeadLetter(entry_id, reason, message, texts.get("source", ""), own)
