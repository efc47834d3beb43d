"""Writes as requests, and their results."""

from __future__ import annotations

import json
from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from typing import Any

from kcm import errors
from kcm.api import codec
from kcm.api.custom.partial import PartialObjectMetadata, decode_partial
from kcm.api.scheme import Resource
from kcm.apimachinery.meta_v1 import Kind, Kind_co
from kcm.store.options import DeleteOptions
from kcm.store.remote.differences import Change
from kcm.store.writes.guards import (
    Absent,
    Exists,
    Guard,
    Indexed,
    NothingCharged,
    TokenAvailable,
    Unindexed,
)
from kcm.store.writes.items import WriteItem, WriteResult, WriteStatus

# Guards about one other object, which is read just before the write.
READ_BEFORE = (Exists, Absent, Indexed)
# Guards about other objects, which the caches have shown to hold, and which nothing can check in
# the moment of the write. As in upstream, the version that the write pins stands for them: a write
# that conflicts has to be planned anew.
PINNED = (Unindexed, NothingCharged)


@dataclass(frozen=True, slots=True)
class RemoteItem(WriteItem[Kind_co]):
    """A write as a request, with what an update changes, and the options of a delete."""

    change: Change | None = None
    options: DeleteOptions | None = None


@dataclass(frozen=True, slots=True)
class RemoteResult(WriteResult[Kind_co]):
    """The result of a request, with the object or the error that the server returned."""

    returned: Kind_co | None = None
    failure: errors.KcmError | None = None

    def get_stored(self) -> Kind_co:
        if self.failure is not None:
            raise self.failure
        return self.returned or self.item.obj

    def error(self) -> errors.KcmError:
        return self.failure or errors.KcmError(self.detail)


def delete_body(item: RemoteItem) -> object:
    options = item.options or DeleteOptions()
    conditions = {"uid": options.uid or item.obj.uid, "resourceVersion": options.resource_version}
    body = {
        "apiVersion": "v1",
        "kind": "DeleteOptions",
        "gracePeriodSeconds": options.grace_period_seconds,
        "propagationPolicy": options.propagation_policy,
        "preconditions": {name: value for name, value in conditions.items() if value},
    }
    return {name: value for name, value in body.items() if value is not None}


# A delete is refused by its checks or by the storage, in two ways.
_OTHER_UID = ("UID in the precondition", "UID in precondition")


def status_of(error: errors.ApiError) -> WriteStatus:
    """Returns the status with which the script of the local store would end the write."""
    match error:
        case errors.AlreadyExists():
            return WriteStatus.EXISTS
        case errors.NotFound():
            return WriteStatus.NOT_FOUND
        case errors.Conflict() if any(words in error.message for words in _OTHER_UID):
            return WriteStatus.UID
        case errors.Conflict():
            return WriteStatus.CONFLICT
    return WriteStatus.REFUSED


def refuse(item: RemoteItem[Kind], error: errors.ApiError) -> RemoteResult[Kind]:
    """Returns the result of a request that the server refused.

    A conflict is the failure of a guard for which the pinned version stands.
    """
    status = status_of(error)
    if isinstance(error, errors.Conflict) and any(isinstance(g, PINNED) for g in item.guards):
        status, error = WriteStatus.GUARD, errors.GuardFailed(error.message)
    return RemoteResult(item, status, error.message, failure=error)


def can_check(guard: Guard) -> bool:
    """Reports whether a guard can be checked over REST."""
    return isinstance(guard, (TokenAvailable, *READ_BEFORE))


def decode_object(data: bytes | dict[str, Any], resource: Resource[Kind]) -> Kind:
    """Returns an object of the other server, with the fields that kcm does not know.

    That server may be of a later version, and a PUT must not take its fields away.
    """
    if issubclass(resource.model, PartialObjectMetadata):
        raw = data if isinstance(data, bytes) else json.dumps(data).encode()
        head = {"kind": resource.kind, "api_version": resource.api_version}
        return decode_partial(raw, resource.model).replace(**head)
    return codec.decode(data, resource, keep_unknown=True)


def decode_items(page: Mapping[str, Any], resource: Resource[Kind]) -> Iterator[Kind]:
    """Yields the objects of a page of a list, whose items need not say their kind.

    They are without managed fields, as in watches (`streams`).
    """
    whole = {"apiVersion": resource.api_version, "kind": resource.kind}
    for item in page["items"] or ():
        (item.get("metadata") or {}).pop("managedFields", None)
        yield decode_object(item | whole, resource)
