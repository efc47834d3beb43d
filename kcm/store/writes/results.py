"""The results of writes, in the form of the write script and as exceptions."""

from __future__ import annotations

from dataclasses import dataclass
from enum import StrEnum
from typing import Generic

from kcm import errors
from kcm.api.custom.kinds import CustomResource
from kcm.apimachinery.meta_v1 import Kind_co
from kcm.store import namespaces
from kcm.store.writes import guards
from kcm.store.writes.guards import Exists, Guard, TokenAvailable
from kcm.store.writes.items import WriteItem


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
