"""The write script in memory: the counterpart of kcm/redisio/lua/store_write.lua.

It reads the same arguments and returns the same replies, which are described there. What only a
fault of a server can cause is left out: keys of a wrong type, streams with foreign entries, and
refused writes.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

from pydantic_core import from_json

from kcm.redisio.commands import Argument
from kcm.store.memory.data import MemoryData
from kcm.store.memory.limiters import take_token
from kcm.store.writes.guards import GuardKind

Answer = tuple[str, str]  # status and detail


@dataclass(frozen=True)
class _Item:
    """An item: its header, and the object's JSON before and after the resourceVersion."""

    header: dict[str, Any]
    head: bytes
    tail: bytes

    @property
    def namespace(self) -> str:
        """The namespace in the object's key, "" if it has none."""
        return str(self.header["k"].rpartition("/")[0])

    @property
    def member(self) -> str:
        """The object in the sets of the indexes."""
        return f"{self.header['r']} {self.header['k']}"

    @property
    def uses_quota(self) -> bool:
        """Whether a namespace with quotas charges it."""
        header = self.header
        created = header["o"] == "create" and not header.get("a")
        return bool(self.namespace) and header["r"] != "events" and (header.get("c") or created)


def write_objects(data: MemoryData, now: float, args: Sequence[Argument]) -> list[str]:
    """Writes items, of which each succeeds or fails by itself; all charged ones are written, or
    none.
    """
    fence_key, fence_field, token, stream, _, _, count = args[:7]
    if stream:
        raise LookupError("a server in memory has no event bus")
    if fence_key and data.field(str(fence_key), str(fence_field)) != str(token).encode():
        return ["FENCED"]
    texts, rest = args[7 : 7 + int(count)], args[8 + int(count) :]
    quads = zip(rest[::4], rest[1::4], rest[2::4], rest[3::4], strict=True)
    items = [_decode(quad, texts) for quad in quads]
    script = _Script(data, now)
    answers = script.withhold(items)
    reply = ["OK"]
    for number, item in enumerate(items):
        reply += answers[number] if number in answers else script.write(item)
    return reply


def _decode(quad: tuple[Argument, ...], texts: Sequence[Argument]) -> _Item:
    *parts, number = quad
    header, head, tail = map(_to_bytes, parts)
    shared = _to_bytes(texts[int(number) - 1]) if int(number) else b""
    return _Item(from_json(header), head, tail + shared)


def _to_bytes(argument: Argument) -> bytes:
    return argument if isinstance(argument, bytes) else str(argument).encode()


class _Script:
    """One call of the script."""

    def __init__(self, data: MemoryData, now: float) -> None:
        self._data = data
        self._keys = data.keys
        self._now = now

    def withhold(self, items: Sequence[_Item]) -> dict[int, Answer]:
        """Returns the answers of the charged items if one of them must not be written, else
        none.
        """
        reasons = {n: self._refuse(item) for n, item in enumerate(items) if item.header.get("q")}
        if not any(reasons.values()):
            return {}
        return {n: answer or ("withheld", "") for n, answer in reasons.items()}

    def write(self, item: _Item) -> Answer:
        refused = self._refuse(item)
        if refused is not None:
            return refused
        header, keys = item.header, self._keys
        stored = keys.object(header["r"], header["k"])
        old = set((self._data.field(stored, "index") or b"").decode().split("\n")) - {""}
        self._data.counter += 1
        version = str(self._data.counter)
        raw = item.head + version.encode() + item.tail
        self._log(item, version, raw)
        if header["o"] == "delete":
            del self._data.hashes[stored]
            self._data.sets[keys.object_keys(header["r"])].discard(header["k"])
            self._index(item, version, old, set())
            self._forget(header)
            return "ok", version
        uid = header["u"] or (self._data.field(stored, "uid") or b"").decode()
        fields = {"rv": version, "uid": uid, "index": "\n".join(header["i"])}
        encoded = {name: text.encode() for name, text in fields.items()}
        self._data.hashes[stored] = {"json": raw, "deleting": header["d"].encode(), **encoded}
        self._data.sets[keys.object_keys(header["r"])].add(header["k"])
        self._index(item, version, old, set(header["i"]))
        if header.get("q") and (header.get("c") or header["o"] == "create"):
            self._data.hashes[keys.charged(item.namespace)][header["r"]] = version.encode()
        return "ok", version

    def _log(self, item: _Item, version: str, raw: bytes) -> None:
        """Appends the change to the watch log of its kind."""
        header = item.header
        change = {"create": b"ADDED", "update": b"MODIFIED", "delete": b"DELETED"}[header["o"]]
        entry = {b"type": change, b"key": header["k"].encode(), b"object": raw}
        log = self._data.streams[self._keys.watch(header["r"])]
        log.append((f"{version}-0".encode(), entry))
        self._data.hashes[self._keys.last_rv()][header["r"]] = version.encode()

    def _index(self, item: _Item, version: str, old: set[str], new: set[str]) -> None:
        """Updates the sets of the index entries, and records changes of those of nodes."""
        for entry in old - new:
            self._data.sets[self._keys.index(entry)].discard(item.member)
        for entry in new - old:
            self._data.sets[self._keys.index(entry)].add(item.member)
        for entry in old ^ new:
            if entry.startswith("node:"):
                guards = [g for g in item.header.get("g", ()) if g[:2] == ["unchanged", entry]]
                stamp = f"{guards[-1][2]} {guards[-1][3]}" if guards and entry in new else ""
                raised = self._data.hashes[self._keys.raised()]
                raised[entry] = f"{version} {stamp}".encode()

    def _forget(self, header: dict[str, Any]) -> None:
        """Removes what is recorded of a node or namespace that is gone."""
        if header["r"] == "nodes":
            self._data.hashes[self._keys.raised()].pop(f"node:{header['k']}", None)
        if header["r"] == "namespaces":
            self._data.hashes.pop(self._keys.charged(header["k"]), None)

    def _refuse(self, item: _Item) -> Answer | None:
        """Returns the status and detail of an item that must not be written, else None."""
        header = item.header
        stored = self._keys.object(header["r"], header["k"])
        version = (self._data.field(stored, "rv") or b"").decode()
        uid = (self._data.field(stored, "uid") or b"").decode()
        if header["o"] == "create":
            if version and uid == header["u"]:
                return "ok", version
            closed = "" if header.get("a") else self._why_closed(item.namespace)
            if closed:
                return "namespace", closed
            if version:
                return "exists", uid
        elif not version:
            return "notfound", ""
        elif header["u"] not in ("", uid):
            return "uid", uid
        elif header["v"] not in ("", version):
            return "conflict", version
        if item.uses_quota and not header.get("q") and self._limited(item.namespace):
            return "quota", ""
        for number, guard in enumerate(header.get("g") or (), 1):
            if not self._holds(guard):
                return "guard", str(number)
        return None

    def _limited(self, namespace: str) -> bool:
        return bool(self._data.sets[self._keys.index(f"quota:{namespace}")])

    def _why_closed(self, namespace: str) -> str:
        """Returns why nothing may be created in a namespace, "" if it may, or if there is none."""
        if not namespace:
            return ""
        deleting = self._data.field(self._keys.object("namespaces", namespace), "deleting")
        return "missing" if deleting is None else "terminating" if deleting == b"1" else ""

    def _holds(self, guard: Sequence[str]) -> bool:
        """Reports whether a guard holds. Takes a token for one that takes tokens."""
        kind, first, *rest = guard
        data, keys = self._data, self._keys
        match kind:
            case GuardKind.EXISTS:
                stored = data.hashes.get(keys.object(first, rest[0]))
                fine = stored is not None and rest[1].encode() in (b"", stored["uid"])
                return stored is not None and fine and stored["deleting"] != b"1"
            case GuardKind.ABSENT:
                uid = data.field(keys.object(first, rest[0]), "uid")
                return uid is None or rest[1].encode() not in (b"", uid)
            case GuardKind.UNINDEXED:
                return not data.sets[keys.index(first)]
            case GuardKind.INDEXED:
                return f"{first} {rest[0]}" in data.sets[keys.index(rest[1])]
            case GuardKind.TOKEN:
                return take_token(data, self._now, first)
            case GuardKind.QUOTAS:
                return self._quotas(first) == dict(zip(rest[::2], rest[1::2], strict=True))
            case GuardKind.COUNTED:
                charged = data.hashes[keys.charged(first)]
                pairs = zip(rest[::2], rest[1::2], strict=True)
                return all(int(charged.get(kind, 0)) <= int(since) for kind, since in pairs)
            case GuardKind.UNCHANGED:
                raised = (data.field(keys.raised(), first) or b"0 ").decode()
                version, _, stamp = raised.partition(" ")
                own = f"{rest[0]} {rest[1]}" if rest[1] else None
                return int(version) <= int(rest[0]) or stamp == own
        raise LookupError(f"there is no guard {kind}")

    def _quotas(self, namespace: str) -> dict[str, str]:
        """Returns the resourceVersions of the namespace's quotas by name."""
        members = self._data.sets[self._keys.index(f"quota:{namespace}")]
        return {
            key.rpartition("/")[2]: (
                self._data.field(self._keys.object(resource, key), "rv") or b""
            ).decode()
            for resource, key in (member.split(" ", 1) for member in members)
        }
