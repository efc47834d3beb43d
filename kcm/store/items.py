"""What one atomic write carries: items, guards, and the bytes the script gets."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any, Literal

from pydantic_core import to_json

from kcm import errors
from kcm.api import codec
from kcm.api.meta_v1 import KubeObject
from kcm.api.scheme import Resource
from kcm.store.indexes import index_entries

MAX_OBJECT_BYTES = 1_572_864  # upstream's limit on a request to etcd, 1.5 MiB

Operation = Literal["create", "update", "delete"]

# The resourceVersion, which only the script knows, goes in front of the other
# metadata. Only apiVersion and kind are printed before it, and a text that looks
# like this would have its quotes escaped: the first one is the object's own.
_METADATA = b'"metadata":{'


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
class WriteItem:
    """One object's write: the state to store, or for a delete its final state.

    `expected_rv` empty means that any present version may be replaced.
    """

    op: Operation
    resource: Resource
    obj: KubeObject
    expected_rv: str = ""
    guards: tuple[Guard, ...] = ()

    def encoded(self) -> tuple[bytes, bytes, bytes]:
        """Header, and the object's JSON on both sides of the resourceVersion.

        Raises: RequestTooLarge beyond 1.5 MiB.
        """
        obj = self.obj
        if obj.metadata.resource_version is not None:
            obj = obj.with_metadata(resource_version=None)
        text = codec.encode(obj)
        head, metadata, tail = text.partition(_METADATA)
        if tail[:1] != b'"':
            raise errors.KcmError("an object was encoded without metadata")
        if len(text) > MAX_OBJECT_BYTES:
            raise errors.RequestTooLarge(
                f"{self.resource.name} {self.obj.key!r} has {len(text)} bytes, more than the "
                f"{MAX_OBJECT_BYTES} that are allowed"
            )
        return self._header(), head + metadata + b'"resourceVersion":"', b'",' + tail

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
