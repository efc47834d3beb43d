"""What a watch cache holds: the states of objects, and the changes from one to the next.

An entry keeps an object's JSON, and what was made of it: the decoded object, and the object in
other versions. All of that can be forgotten and made again.
"""

from __future__ import annotations

from functools import cache
from typing import Generic

from kcm import errors
from kcm.api import codec
from kcm.api.custom.kinds import CustomResource
from kcm.api.scheme import Resource
from kcm.apimachinery.meta_v1 import Kind, Kind_co, KubeObject
from kcm.store.watch import ChangeType

_MOST_VERSIONS = 2  # versions besides the stored one that an entry keeps converted


class Entry(Generic[Kind_co]):
    """One state of an object in the storage version.

    Its JSON is decoded when its fields are needed.
    """

    __slots__ = ("_converted", "_obj", "_resource", "key", "start", "tail", "version")

    def __init__(
        self,
        resource: Resource[Kind_co],
        key: str,
        raw: bytes,
        version: int,
        obj: Kind_co | None = None,
    ) -> None:
        self._resource = resource
        self._obj = obj
        self._converted: tuple[Entry, ...] = ()  # in other versions
        self.key = key
        # The JSON begins with `start`, which the items of lists do not have, and ends with `tail`.
        start = json_start(resource)
        self.start = start if raw.startswith(start) else b""
        self.tail = raw[len(self.start) :]
        self.version = version

    @property
    def raw(self) -> bytes:
        """The JSON."""
        return self.start + self.tail

    @property
    def size(self) -> int:
        """The bytes of the JSON."""
        return len(self.start) + len(self.tail)

    @property
    def obj(self) -> Kind_co:
        decoded = self._obj  # read once: another thread may forget it
        if decoded is None:
            decoded = self._obj = codec.decode_stored(self.raw, self._resource)
        return decoded

    def forget_decoded(self) -> None:
        """Drops the decoded forms. They are decoded again when they are needed."""
        self._obj = None
        self._converted = ()

    def convert_to(self, resource: Resource) -> Entry:
        """Returns the entry in the version of `resource`, or itself for the storage version.

        Raises ConversionFailed if only a webhook can convert it, and it was not asked.
        """
        if resource.conversion is None:
            return self
        converted_entry = self._find_converted(resource)
        if converted_entry is not None:
            return converted_entry
        obj = codec.decode_stored(self.raw, resource)
        if obj.api_version != resource.api_version:
            raise errors.ConversionFailed(
                f"{resource.name} {self.key!r} was not converted to {resource.api_version}"
            )
        return self.keep_converted(resource, obj)

    def is_converted(self, resource: Resource) -> bool:
        """Reports whether the entry is known in the version of `resource`."""
        return self._find_converted(resource) is not None

    def keep_converted(self, resource: Resource, obj: KubeObject) -> Entry:
        """Remembers the object in the version of `resource`, and returns that as an entry.

        The versions that were requested last are kept.
        """
        entry = Entry.build(resource, obj, self.version)
        self._converted = (entry, *self._converted[: _MOST_VERSIONS - 1])
        return entry

    def _find_converted(self, resource: Resource) -> Entry | None:
        for entry in self._converted:
            if entry._resource is resource:
                return entry
        return None

    def at_version(self, version: int) -> Entry:
        """Returns an entry with this object and another resourceVersion."""
        obj = self.obj.with_metadata(resource_version=str(version))
        return Entry.build(self._resource, obj, version)

    @staticmethod
    def build(resource: Resource[Kind], obj: Kind, version: int = 0) -> Entry[Kind]:
        """Returns an entry with an object in the version of `resource`."""
        return Entry(resource, obj.key, codec.encode(obj), version, obj)


def json_start(resource: Resource) -> bytes:
    """Returns how the JSON of all entries of a built-in kind begins: kind and apiVersion, which the
    items of a list have not. It is empty for custom kinds, whose items have them.
    """
    return b"" if isinstance(resource, CustomResource) else _encode_start(resource)


@cache
def _encode_start(resource: Resource) -> bytes:
    return f'{{"kind":"{resource.kind}","apiVersion":"{resource.api_version}",'.encode()


def renew_json(raw: bytes, obj: KubeObject) -> bytes:
    """Returns the JSON that is served for a stored object: without unknown fields, kind first.

    `raw` is what is stored, perhaps by another version of kcm.
    """
    return raw if raw.startswith(json_start(obj.resource)) else codec.encode(obj)


class CacheEvent:
    """A change of an object, with the entry before it, by which selectors decide what it means."""

    __slots__ = ("_converted", "_last_match", "_line", "before", "entry", "type")

    def __init__(self, type: ChangeType, entry: Entry, before: Entry | None) -> None:
        self.type = type
        self.entry = entry
        self.before = before
        self._line: bytes | None = None
        self._converted: tuple[Resource, CacheEvent] | None = None
        self._last_match: Entry | None = None

    def convert_to(self, resource: Resource, *, with_before: bool = True) -> CacheEvent:
        """Returns the event in the version of `resource`, converted once for all its watchers.

        Those without selectors need no `before`. Raises ConversionFailed as `Entry.convert_to`.
        """
        if resource.conversion is None:
            return self
        kept = self._converted  # read once: another thread may forget it
        if kept is None or kept[0] is not resource or (with_before and not kept[1].is_whole(self)):
            before = self.before.convert_to(resource) if self.before and with_before else None
            converted = CacheEvent(self.type, self.entry.convert_to(resource), before)
            kept = self._converted = (resource, converted)
        return kept[1]

    def is_whole(self, original: CacheEvent) -> bool:
        """Reports whether this has the entry before, if the original has one."""
        return self.before is not None or original.before is None

    @property
    def line(self) -> bytes:
        """Returns the event as watchers of JSON get it, computed once for all of them."""
        line = self._line
        if line is None:
            line = self._line = b"".join(event_parts(self.type, self.entry))
        return line

    @property
    def last_match(self) -> Entry:
        """Returns the object of the DELETED event that tells watchers that it no longer matches
        their selectors: the object before this change, with the version of the change.
        """
        if self.before is None or self.type == "DELETED":
            return self.entry
        last = self._last_match
        if last is None:
            last = self._last_match = self.before.at_version(self.entry.version)
        return last

    @property
    def size(self) -> int:
        """Returns the bytes of JSON that are kept for this change alone."""
        return self.entry.size

    def forget_decoded(self) -> None:
        """Drops what can be computed again from the JSON, except an object that is still cached."""
        self._line = self._converted = self._last_match = None
        if self.before is not None:
            self.before.forget_decoded()
        if self.type == "DELETED":
            self.entry.forget_decoded()


def event_line(type: str, raw: bytes) -> bytes:
    """Returns the line of a watch's stream for an event. `raw` is the object's JSON."""
    return b'{"type":"%b","object":%b}\n' % (type.encode(), raw)


def event_parts(type: str, entry: Entry) -> tuple[bytes, bytes, bytes]:
    """Returns the line of an entry in parts, one of which is the entry's, so that it is not
    copied.
    """
    return b'{"type":"%b","object":%b' % (type.encode(), entry.start), entry.tail, b"}\n"
