"""What one atomic write carries: the object, the guards, and the bytes that the script gets."""

from __future__ import annotations

from dataclasses import dataclass
from functools import cached_property
from typing import Any, Literal

from pydantic_core import from_json, to_json

from kcm import errors
from kcm.api import codec
from kcm.api.scheme import Resource
from kcm.apimachinery.meta_v1 import KubeObject
from kcm.apimachinery.nesting import MAX_DEPTH
from kcm.store.indexes import index_entries
from kcm.store.writes.guards import Guard, encode_guard

MAX_OBJECT_BYTES = 1_572_864  # upstream's limit on a request to etcd, 1.5 MiB

_READABLE_DEPTH = 200  # of pydantic's parser; see kcm.apimachinery.nesting

# The resourceVersion goes in front of the other metadata. Only apiVersion and
# kind are printed before it, and a text that looks like this would have its
# quotes escaped: the first one is the object's own.
_METADATA = b'"metadata":{'
_VERSION = b'"resourceVersion":"'

Operation = Literal["create", "update", "delete"]


@dataclass(frozen=True, slots=True)
class Encoded:
    """An item as the write script reads it. The object is head, resourceVersion, tail and shared
    text.

    Only the script knows the resourceVersion. `shared` is one object in memory for all copies of a
    pattern, so that a call carries it once.
    """

    header: bytes
    head: bytes
    tail: bytes
    shared: bytes

    def __len__(self) -> int:
        return len(self.head) + len(self.tail) + len(self.shared)


class Pattern:
    """A create that others repeat. All but the metadata is encoded once for all of them."""

    def __init__(self, item: WriteItem) -> None:
        self.item = item

    @cached_property
    def frame(self) -> tuple[bytes, bytes]:
        """The JSON before and behind the metadata."""
        obj = self.item.obj
        text = codec.encode_stored(obj, self.item.resource)
        before, _, after = text.partition(codec.encode(obj.metadata))
        return before, after


@dataclass(frozen=True, slots=True)
class WriteItem:
    """The write of one object: the state to store, or for a delete its final state.

    With an empty `expected_rv`, any stored version may be replaced.
    """

    op: Operation
    resource: Resource
    obj: KubeObject
    expected_rv: str = ""
    guards: tuple[Guard, ...] = ()
    pattern: Pattern | None = None  # the create that this one copies, except its metadata
    # Creates the object whether or not its namespace exists or its quotas have room: for backups.
    anywhere: bool = False
    replaced: KubeObject | None = None  # the old object, if the new one takes more of quotas
    charged: bool = False  # all charged items of a call are written, or none

    def encode(self) -> Encoded:
        """Returns what the write script gets.

        Raises: RequestTooLarge beyond 1.5 MiB, BadRequest for an object that could not be read
        again.
        """
        head, tail, shared = self._encode_copy() if self.pattern else self._encode_whole()
        encoded = Encoded(self.encode_header(), head + _VERSION, tail, shared)
        if len(encoded) > MAX_OBJECT_BYTES:
            raise errors.RequestTooLarge(
                f"{self.resource.name} {self.obj.key!r} has {len(encoded)} bytes, more than the "
                f"{MAX_OBJECT_BYTES} that are allowed"
            )
        if self.op != "delete":
            self._require_readable(encoded)
        return encoded

    def _require_readable(self, encoded: Encoded) -> None:
        """Raises BadRequest for an object that is nested too deep to be read again."""
        parts = (encoded.head, encoded.tail, encoded.shared)
        if sum(part.count(b"{") + part.count(b"[") for part in parts) <= MAX_DEPTH:
            return
        # An object from before there was a limit must still take its deletion mark.
        most = _READABLE_DEPTH - 4 if self.obj.metadata.deletion_timestamp else MAX_DEPTH
        spare = _READABLE_DEPTH - most
        whole = b"".join((b"[" * spare, encoded.head, b"0", *parts[1:], b"]" * spare))
        try:
            from_json(whole)
        except ValueError as error:
            raise errors.BadRequest(
                f"{self.resource.name} {self.obj.key!r} could not be read again: objects and lists "
                f"may be nested {most} levels deep, the fields' managers included ({error})"
            ) from None

    def _encode_whole(self) -> tuple[bytes, bytes, bytes]:
        obj = self.obj
        if obj.metadata.resource_version is not None:
            obj = obj.with_metadata(resource_version=None)
        text = codec.encode_stored(obj, self.resource)
        before, metadata, after = text.partition(_METADATA)
        return before + metadata, b'",' + after, b""

    def _encode_copy(self) -> tuple[bytes, bytes, bytes]:
        assert self.pattern is not None
        before, after = self.pattern.frame
        return before + b"{", b'",' + codec.encode(self.obj.metadata)[1:], after

    def encode_header(self) -> bytes:
        """Returns all that the script decodes, which is everything but the object, as JSON."""
        header: dict[str, Any] = {
            "o": self.op,
            "r": self.resource.name,
            "k": self.obj.key,
            "u": self.obj.uid or "",
            "v": self.expected_rv,
            "i": index_entries(self.resource, self.obj),
            "d": "1" if self.obj.metadata.deletion_timestamp else "0",
        }
        if self.anywhere:
            header["a"] = True
        if self.replaced is not None:
            header["c"] = True
        if self.charged:
            header["q"] = True
        if self.guards:
            header["g"] = [encode_guard(guard) for guard in self.guards]
        return to_json(header)
