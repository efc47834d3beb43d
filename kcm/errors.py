"""All exceptions of kcm.

The first line of a class's docstring is its default message; facts are attributes. Three families
matter to callers: `ApiError` (the outcome of a request, in the words and codes of the Kubernetes
API), `Temporary` (the cause is outside of kcm: try again) and `Fenced` (this worker no longer holds
the key or lease that it writes for: stop).
"""

from __future__ import annotations

import json
import re
from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any


class KcmError(Exception):
    """Something went wrong in kcm."""

    def __init__(self, message: str | None = None) -> None:
        super().__init__(message or (self.__doc__ or "").strip().splitlines()[0])

    @property
    def message(self) -> str:
        return str(self.args[0])


class ConfigurationError(KcmError):
    """A setting is wrong; the message names it and says what to do."""


class PortTaken(ConfigurationError):
    """The port is in use."""


class Temporary(KcmError):
    """The cause is outside of kcm and may pass, so it may help to try again later."""


class StoreUnavailable(Temporary):
    """Redis does not answer."""


class WritesRefused(Temporary):
    """Redis refuses writes: it is a replica, or has too few replicas itself."""


class NotReplicated(Temporary):
    """The write was made, but not on as many replicas as it must be: a failover may lose it."""


class OutOfMemory(WritesRefused):
    """Redis refuses writes: used memory exceeds maxmemory."""


class StorageFull(WritesRefused):
    """Redis refuses writes: it cannot persist to disk (see its log)."""


class WrongTypeOfKey(Temporary):
    """A key has another type than kcm stores there. What needs it fails until it is deleted."""


class CacheNotSynced(Temporary):
    """The informer caches did not reach the store's last write in time."""


class ContainerRuntimeError(Temporary):
    """The container runtime could not carry out a request."""


class SandboxNotFound(ContainerRuntimeError):
    """The runtime has no pod sandbox of this id."""


class ContainerNotFound(ContainerRuntimeError):
    """The runtime has no container of this id."""


class ImagePullFailed(ContainerRuntimeError):
    """The image could not be pulled."""


class HostPortTaken(ContainerRuntimeError):
    """Another pod of this node has the host port."""


class ExecTimeout(ContainerRuntimeError):
    """The command did not end in time and was killed."""


class ContainerConfigError(Temporary):
    """An object that a container's environment or volumes refer to is missing or not available
    here.
    """


class Fenced(KcmError):
    """This worker no longer holds the key or lease that it writes for."""


class EpochChanged(Temporary):
    """The Redis server was promoted or restarted; positions and tokens from before are void."""


@dataclass(frozen=True)
class FieldError:
    """A fault of one field, with a text in the form of upstream's `field.Error`.

    Source: staging/src/k8s.io/apimachinery/pkg/util/validation/field/errors.go, Kubernetes 1.33.
    """

    type: str  # e.g. "Invalid value", "Required value"
    field: str
    value: Any = None
    detail: str = ""

    # Not annotated, so not a field of the dataclass.
    OMITS_VALUE = frozenset({"Required value", "Forbidden", "Internal error", "Too long"})

    def __str__(self) -> str:
        parts = [self.field, self.type]
        if self.type not in self.OMITS_VALUE:
            parts.append(_print_value(self.value))
        if self.detail:
            parts.append(self.detail)
        return ": ".join(parts)


_SHOWN = 1024  # the most characters of what a client sent that a message repeats


def shorten(text: str, most: int = _SHOWN) -> str:
    """Returns a text for a message, cut if it is long, since a client may have sent much of it."""
    return text if len(text) <= most else f"{text[:most]}... ({len(text)} characters)"


class Verbatim(str):
    """A value that is printed unchanged, for values that Go prints in another way."""

    __slots__ = ()


def _print_value(value: Any) -> str:
    """Returns a value as Go's %v, %q or %#v prints it: on one line, quoted and escaped."""
    return shorten(_write_value(value))


def _write_value(value: Any) -> str:
    if isinstance(value, Verbatim):
        return str(value)
    if isinstance(value, dict) and value and all(isinstance(v, str) for v in value.values()):
        pairs = ", ".join(f"{_quote(k)}:{_quote(v)}" for k, v in sorted(value.items()))
        return f"map[string]string{{{pairs}}}"
    if isinstance(value, list) and value and all(isinstance(item, str) for item in value):
        return "[]string{" + ", ".join(_quote(item) for item in value) + "}"
    if isinstance(value, str):
        return _quote(value)
    return json.dumps(value, ensure_ascii=False, separators=(",", ":"), default=str)


def _quote(text: str) -> str:
    return json.dumps(text, ensure_ascii=False)


class ApiError(KcmError):
    """The request was refused."""

    code = 500
    reason = "InternalError"

    def __init__(self, message: str | None = None, *, resource: str = "", name: str = "") -> None:
        super().__init__(message)
        self.resource = resource
        self.name = name


class BadRequest(ApiError):
    """The request cannot be understood."""

    code = 400
    reason = "BadRequest"


class NotJson(BadRequest):
    """The text is not JSON."""

    why = ""

    @classmethod
    def because(cls, why: str) -> NotJson:
        error = cls(f"the object is not JSON: {why}")
        error.why = why
        return error


class ConversionFailed(ApiError):
    """A custom object could not be converted to another version. The object itself is whole."""

    code = 500
    reason = ""


class ResourceVersionSet(ApiError):
    """resourceVersion should not be set on objects to be created"""

    code = 500  # as upstream, where the storage says it
    reason = ""


class KindTerminating(ApiError):
    """create not allowed while custom resource definition is terminating"""

    code = 405
    reason = "MethodNotAllowed"


class UnknownKind(BadRequest):
    """The server doesn't have a resource of that kind."""


class Forbidden(ApiError):
    """The request is not allowed."""

    code = 403
    reason = "Forbidden"


class NamespaceTerminating(Forbidden):
    """The namespace is being terminated, so nothing new may be created in it."""


class NotFound(ApiError):
    """The object does not exist."""

    code = 404
    reason = "NotFound"

    @classmethod
    def of(cls, resource: str, name: str) -> NotFound:
        return cls(f'{resource} "{name}" not found', resource=resource, name=name)


class AlreadyExists(ApiError):
    """An object of that name exists already."""

    code = 409
    reason = "AlreadyExists"

    @classmethod
    def of(cls, resource: str, name: str) -> AlreadyExists:
        return cls(f'{resource} "{name}" already exists', resource=resource, name=name)


class Conflict(ApiError):
    """The object has been modified; apply your changes to the latest version and try again."""

    code = 409
    reason = "Conflict"

    @classmethod
    def of(cls, resource: str, name: str, why: str | None = None) -> Conflict:
        why = why or (
            "the object has been modified; please apply your changes to the latest version "
            "and try again"
        )
        return cls(
            f'Operation cannot be fulfilled on {resource} "{name}": {why}',
            resource=resource,
            name=name,
        )


class GuardFailed(Conflict):
    """A guard of the write no longer holds, so nothing was written."""


class LimitReached(GuardFailed):
    """The token bucket of the write is empty, so nothing was written."""


class Gone(ApiError):
    """The requested resourceVersion is too old: list again and watch from there."""

    code = 410
    reason = "Expired"


class Damaged(ApiError):
    """The stored object cannot be read: another program wrote it, or only a part of it was
    written.
    """

    code = 500
    reason = "StorageReadError"  # as upstream's, for an object that cannot be decoded

    @classmethod
    def of(cls, resource: str, key: str, why: str) -> Damaged:
        return cls(
            f'{resource} "{key}" is stored in a form that cannot be read ({why}): delete it, '
            "or have it written correctly",
            resource=resource,
            name=key.rpartition("/")[2],
        )


class RequestTooLarge(ApiError):
    """The object is larger than the store accepts."""

    code = 413
    reason = "RequestEntityTooLarge"


class Invalid(ApiError):
    """The object is invalid."""

    code = 422
    reason = "Invalid"

    def __init__(
        self, causes: Sequence[FieldError], *, kind: str = "", name: str = "", resource: str = ""
    ) -> None:
        self.causes = tuple(causes)
        listed = (
            str(self.causes[0])
            if len(self.causes) == 1
            else "[" + ", ".join(str(cause) for cause in self.causes) + "]"
        )
        subject = f'{kind} "{name}" is invalid: ' if kind else ""
        super().__init__(subject + listed, resource=resource, name=name)
        self.kind = kind


class WrongType(Invalid):
    """A value has another type than its field.

    `given` has the type for each cause: string, number, bool, array, object or null, as in JSON, or
    "" for another kind of cause.
    """

    def __init__(
        self,
        causes: Sequence[FieldError],
        given: Sequence[str],
        *,
        kind: str = "",
        name: str = "",
        resource: str = "",
    ) -> None:
        super().__init__(causes, kind=kind, name=name, resource=resource)
        self.given = tuple(given)


_HOLDS = re.compile(r" holds an? \w+, not an? ")


def is_about_type(text: str) -> bool:
    """Reports whether an error text of Redis is about a key of a wrong type."""
    return "WRONGTYPE" in text or _HOLDS.search(text) is not None


def from_redis(text: str) -> KcmError:
    """Returns the exception for an error text of Redis, whether a command or a script returned
    it.
    """
    if "OOM command not allowed" in text:
        return OutOfMemory(f"Redis refuses writes, raise maxmemory: {text}")
    if "MISCONF" in text:
        return StorageFull(f"Redis refuses writes, look at its disk and log: {text}")
    if is_about_type(text):
        return WrongTypeOfKey(
            f"a key has another type than kcm stores there, since another program has written it; "
            f"delete it with `kcm redis-cli DEL KEY`: {text}"
        )
    if "LOADING" in text or "MASTERDOWN" in text:
        return StoreUnavailable(f"Redis does not answer yet: {text}")
    if "READONLY" in text or "NOREPLICAS" in text:
        return WritesRefused(f"Redis refuses writes, look at its role and replicas: {text}")
    return KcmError(f"Redis refused the command: {text}")
