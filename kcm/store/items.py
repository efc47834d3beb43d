"""What one atomic write carries: items, guards, and the bytes the script gets."""

from __future__ import annotations

from dataclasses import dataclass
from functools import cached_property
from typing import Any, Literal

from pydantic_core import to_json

from kcm import errors
from kcm.api import codec
from kcm.api.meta_v1 import KubeObject
from kcm.api.scheme import Resource
from kcm.store.indexes import index_entries

MAX_OBJECT_BYTES = 1_572_864  # upstream's limit on a request to etcd, 1.5 MiB

# The resourceVersion goes in front of the other metadata. Only apiVersion and
# kind are printed before it, and a text that looks like this would have its
# quotes escaped: the first one is the object's own.
_METADATA = b'"metadata":{'
_VERSION = b'"resourceVersion":"'

Operation = Literal["create", "update", "delete"]


@dataclass(frozen=True, slots=True)
class Guard:
    """A condition that the script checks in the moment of the write (DESIGN D8)."""

    terms: tuple[str, ...]

    @classmethod
    def exists(cls, resource: Resource, key: str, uid: str = "") -> Guard:
        """`key` exists, with `uid` unless empty, and is not being deleted."""
        return cls(("exists", resource.name, key, uid))

    @classmethod
    def absent(cls, resource: Resource, key: str, uid: str = "") -> Guard:
        """No object `key` exists; with `uid`, none with that uid."""
        return cls(("absent", resource.name, key, uid))

    @classmethod
    def unindexed(cls, entry: str) -> Guard:
        """No object carries the index entry, e.g. `owner:<uid>`."""
        return cls(("unindexed", entry))

    def __str__(self) -> str:
        return " ".join(self.terms)


@dataclass(frozen=True, slots=True)
class Encoded:
    """An item as the script gets it: the object is head, resourceVersion, tail, shared.

    Only the script knows the resourceVersion. `shared` is one and the same object
    for all copies of a pattern, so that a call carries it once.
    """

    header: bytes
    head: bytes
    tail: bytes
    shared: bytes

    def __len__(self) -> int:
        return len(self.head) + len(self.tail) + len(self.shared)


class Pattern:
    """A creation that others repeat; all but the metadata is encoded once for all of them."""

    def __init__(self, item: WriteItem) -> None:
        self.item = item

    @cached_property
    def frame(self) -> tuple[bytes, bytes]:
        """What is printed before and after the metadata."""
        obj = self.item.obj
        before, _, after = codec.encode(obj).partition(codec.encode(obj.metadata))
        return before, after


@dataclass(frozen=True, slots=True)
class WriteItem:
    """One object's write: the state to store, or for a delete its final state.

    `expected_rv` empty means that any present version may be replaced.
    """

    op: Operation
    resource: Resource
    obj: KubeObject
    expected_rv: str = ""
    guards: tuple[Guard, ...] = ()
    pattern: Pattern | None = None  # what this one copies, its metadata excepted

    def encoded(self) -> Encoded:
        """What the script gets. Raises: RequestTooLarge beyond 1.5 MiB."""
        head, tail, shared = self._copied() if self.pattern else self._whole()
        encoded = Encoded(self._header(), head + _VERSION, tail, shared)
        if len(encoded) > MAX_OBJECT_BYTES:
            raise errors.RequestTooLarge(
                f"{self.resource.name} {self.obj.key!r} has {len(encoded)} bytes, more than the "
                f"{MAX_OBJECT_BYTES} that are allowed"
            )
        return encoded

    def _whole(self) -> tuple[bytes, bytes, bytes]:
        obj = self.obj
        if obj.metadata.resource_version is not None:
            obj = obj.with_metadata(resource_version=None)
        before, metadata, after = codec.encode(obj).partition(_METADATA)
        return before + metadata, b'",' + after, b""

    def _copied(self) -> tuple[bytes, bytes, bytes]:
        assert self.pattern is not None
        before, after = self.pattern.frame
        return before + b"{", b'",' + codec.encode(self.obj.metadata)[1:], after

    def _header(self) -> bytes:
        header: dict[str, Any] = {
            "o": self.op,
            "r": self.resource.name,
            "k": self.obj.key,
            "u": self.obj.uid or "",
            "v": self.expected_rv,
            "i": index_entries(self.resource, self.obj),
            "d": "1" if self.obj.metadata.deletion_timestamp else "0",
        }
        if self.guards:
            header["g"] = [guard.terms for guard in self.guards]
        return to_json(header)


@dataclass(frozen=True, slots=True)
class WriteResult:
    """How one item ended: `ok` with its new resourceVersion, or why not."""

    item: WriteItem
    status: str
    detail: str

    @property
    def ok(self) -> bool:
        return self.status == "ok"

    def stored(self) -> KubeObject:
        """The object as it now stands in the store.

        Raises: the ApiError that `error` names, when the write did not happen.
        """
        if not self.ok:
            raise self.error()
        return self.item.obj.with_metadata(resource_version=self.detail)

    def error(self) -> errors.KcmError:
        """Why the write did not happen, as an exception."""
        resource, name = self.item.resource.name, self.item.obj.name or ""
        match self.status:
            case "exists":
                return errors.AlreadyExists.of(resource, name)
            case "notfound":
                return errors.NotFound.of(resource, name)
            case "conflict":
                return errors.Conflict.of(resource, name)
            case "uid":
                return errors.Conflict.of(
                    resource,
                    name,
                    f"Precondition failed: UID in precondition: {self.item.obj.uid}, "
                    f"UID in object meta: {self.detail}",
                )
            case "guard":
                guard = self.item.guards[int(self.detail) - 1]
                return errors.GuardFailed.of(resource, name, f"guard failed: {guard}")
        return errors.from_redis(self.detail)
