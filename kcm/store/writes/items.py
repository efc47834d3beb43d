"""The content of one atomic write: the object, the guards, and their encoding for the write
script.
"""

from __future__ import annotations

from dataclasses import dataclass
from enum import StrEnum
from functools import cached_property
from typing import Any, Generic, Literal

from pydantic_core import from_json, to_json

from kcm import errors
from kcm.api import codec
from kcm.api.custom.kinds import CustomResource
from kcm.api.scheme import Resource
from kcm.apimachinery.meta_v1 import Kind_co, KubeObject
from kcm.apimachinery.nesting import MAX_DEPTH
from kcm.store import namespaces
from kcm.store.indexes import index_entries
from kcm.store.writes import guards
from kcm.store.writes.guards import Exists, Guard, TokenAvailable, encode_guard

MAX_OBJECT_BYTES = 1_572_864  # upstream's limit on a request to etcd, 1.5 MiB

_READABLE_DEPTH = 200  # of pydantic's parser; see kcm.apimachinery.nesting

# The resourceVersion is inserted before the other metadata. Only apiVersion and kind come before
# the metadata, and in their values quotes are escaped: so the first match is the object's own.
_METADATA = b'"metadata":{'
_VERSION = b'"resourceVersion":"'

Operation = Literal["create", "update", "delete"]


@dataclass(frozen=True, slots=True)
class Encoded:
    """An item in the form that the write script reads.

    The object's JSON is head, resourceVersion, tail and shared text; only the script knows the
    resourceVersion. `shared` is one object in memory for all copies of a pattern, so that a call
    contains it once.
    """

    header: bytes
    head: bytes
    tail: bytes
    shared: bytes

    def __len__(self) -> int:
        return len(self.head) + len(self.tail) + len(self.shared)

    def insert_version(self, version: str) -> bytes:
        """Returns the JSON as the script stores it with this resourceVersion."""
        return b"".join((self.head, version.encode(), self.tail, self.shared))


class Pattern:
    """A create that others repeat. All of it but the metadata is encoded once for all of them."""

    def __init__(self, item: WriteItem) -> None:
        self.item = item

    @cached_property
    def frame(self) -> tuple[bytes, bytes]:
        """The JSON before and after the metadata."""
        obj = self.item.obj
        text = codec.encode_stored(obj, self.item.resource)
        before, _, after = text.partition(codec.encode(obj.metadata))
        return before, after


@dataclass(frozen=True, slots=True)
class WriteItem(Generic[Kind_co]):
    """The write of one object: the state to store, or for a delete the final state.

    With an empty `expected_rv`, any stored version may be replaced.
    """

    op: Operation
    resource: Resource[Kind_co]
    obj: Kind_co
    expected_rv: str = ""
    guards: tuple[Guard, ...] = ()
    pattern: Pattern | None = None  # the create that this one repeats with other metadata
    # Creates the object even if its namespace does not exist or its quotas are used up, to restore
    # a backup.
    anywhere: bool = False
    replaced: KubeObject | None = None  # the old object, if the new one uses more of its quotas
    part: str = ""  # the subresource through which the object is updated
    charged: bool = False  # whether it is charged: all charged items of a call are written, or none

    def encode(self) -> Encoded:
        """Returns the encoded item.

        Raises: RequestTooLarge beyond 1.5 MiB, BadRequest for an object that is nested too deep.
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
        # It must be possible to mark an object as deleted that was stored before there was a limit.
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
        """Returns the part of the item that the script decodes, which is everything but the object,
        as JSON.
        """
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


# --- The results of writes, in the form of the write script and as exceptions.


class WriteStatus(StrEnum):
    """The result of one item's write. The comments say what `WriteResult.detail` has then."""

    OK = "ok"  # the new resourceVersion
    EXISTS = "exists"  # the uid of the object that has the name
    NOT_FOUND = "notfound"
    CONFLICT = "conflict"  # the resourceVersion that is stored
    UID = "uid"  # the uid of the object that is stored
    NAMESPACE = "namespace"  # a NamespaceState
    GUARD = "guard"  # the number of the guard that failed, from 1 on
    QUOTA = "quota"  # the exceeded quotas, "" if the item should have been charged and was not
    WITHHELD = "withheld"  # the item was not written because another charged item could not be
    ERROR = "error"  # the error of Redis
    REFUSED = "refused"  # an API server's message; remote stores only


@dataclass(frozen=True, slots=True)
class WriteResult(Generic[Kind_co]):
    """The result of one item's write. `failed_guard` is the guard that did not hold, if any."""

    item: WriteItem[Kind_co]
    status: WriteStatus
    detail: str = ""
    failed_guard: Guard | None = None

    @classmethod
    def decode(cls, item: WriteItem[Kind_co], status: str, detail: str) -> WriteResult[Kind_co]:
        """Returns the result of an item from the reply of the write script."""
        failed = item.guards[int(detail) - 1] if status == WriteStatus.GUARD else None
        return cls(item, WriteStatus(status), detail, failed)

    @property
    def ok(self) -> bool:
        """Whether the item was written."""
        return self.status is WriteStatus.OK

    def get_stored(self) -> Kind_co:
        """Returns the object as it is stored now.

        Raises the exception that `error` returns if the item was not written.
        """
        if not self.ok:
            raise self.error()
        return self.item.obj.with_metadata(resource_version=self.detail)

    def error(self) -> errors.KcmError:
        """Returns the exception that says why the item was not written."""
        resource, name = self.item.resource.name, self.item.obj.name or ""
        match self.status:
            case WriteStatus.EXISTS:
                return errors.AlreadyExists.of(resource, name)
            case WriteStatus.NOT_FOUND:
                return errors.NotFound.of(resource, name)
            case WriteStatus.CONFLICT:
                return errors.Conflict.of(resource, name)
            case WriteStatus.UID:
                return errors.Conflict.of(
                    resource,
                    name,
                    f"Precondition failed: UID in precondition: {self.item.obj.uid}, "
                    f"UID in object meta: {self.detail}",
                )
            case WriteStatus.QUOTA:
                return errors.Forbidden(
                    f'{resource} "{name}" is forbidden: {self.detail}', resource=resource, name=name
                )
            case WriteStatus.NAMESPACE:
                return namespaces.build_creation_error(
                    self.item.resource, self.item.obj, namespaces.NamespaceState(self.detail)
                )
            case WriteStatus.GUARD:
                return self._guard_error(resource, name)
        return errors.from_redis(self.detail)

    def _guard_error(self, resource: str, name: str) -> errors.ApiError:
        match self.failed_guard:
            case TokenAvailable(bucket):
                return errors.LimitReached.of(resource, name, f"no token left in {bucket}")
            case Exists(guards.DEFINITIONS) if isinstance(self.item.resource, CustomResource):
                return errors.KindTerminating(resource=resource, name=name)
        return errors.GuardFailed.of(resource, name, f"guard failed: {self.failed_guard}")
