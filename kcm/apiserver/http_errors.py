"""Errors of HTTP requests. Errors of the store are in `kcm.errors`.

The docstring of an error class is its default message. Source:
staging/src/k8s.io/apimachinery/pkg/api/errors/errors.go, Kubernetes 1.33.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from types import MappingProxyType
from typing import Any, ClassVar

from kcm.errors import ApiError, Gone


class Unauthorized(ApiError):
    """Unauthorized"""

    code = 401
    reason = "Unauthorized"


class PathNotFound(ApiError):
    """the server could not find the requested resource"""

    code = 404
    reason = "NotFound"


class PolicyDenied(ApiError):
    """A ValidatingAdmissionPolicy refuses the request."""

    code = 422
    reason = "Invalid"
    _CODES: ClassVar = {
        "Unauthorized": 401,
        "Forbidden": 403,
        "RequestEntityTooLarge": 413,
        "Invalid": 422,
    }

    @classmethod
    def of(cls, resource: str, name: str, why: str, reason: str) -> PolicyDenied:
        """Returns the error of a policy that gives this reason, one of a Status."""
        error = cls(f'{resource} "{name}" is forbidden: {why}', resource=resource, name=name)
        error.causes = [why]
        error.reason, error.code = reason, cls._CODES.get(reason, 422)
        return error

    @classmethod
    def because(cls, messages: Sequence[str], reason: str) -> PolicyDenied:
        """Returns the error of mutating policies that cannot be run, as upstream answers."""
        error = cls(messages[0])
        error.causes, error.reason, error.code = messages, reason, 403
        return error

    causes: Sequence[str] = ()  # what the policies say


class StatusError(ApiError):
    """Another server has decided about the request, and its Status is the response's."""

    reason = ""
    details: Mapping[str, Any] = MappingProxyType({})

    @classmethod
    def of(cls, *, message: str, reason: str, code: int, details: Mapping[str, Any]) -> StatusError:
        """Returns the error with the fields of that Status."""
        error = cls(message)
        error.reason, error.code, error.details = reason, code, details
        return error


class InternalError(ApiError):
    """Internal error occurred"""

    code = 500
    reason = "InternalError"
    cause = ""

    @classmethod
    def because(cls, cause: str) -> InternalError:
        """Returns the error with its cause, which the client sees."""
        error = cls(f"Internal error occurred: {cause}")
        error.cause = cause
        return error


class WronglyTyped(ApiError):
    """failed to create typed patch object"""

    code = 500  # as upstream, where no one classifies the error
    reason = ""


class MethodNotAllowed(ApiError):
    """the server does not allow this method on the requested resource"""

    code = 405
    reason = "MethodNotAllowed"


class NotAcceptable(ApiError):
    """only the following media types are accepted: application/json"""

    code = 406
    reason = "NotAcceptable"


class UnsupportedMediaType(ApiError):
    """the body of the request was in an unknown format"""

    code = 415
    reason = "UnsupportedMediaType"


class TooManyRequests(ApiError):
    """Too many requests, please try again later."""

    code = 429
    reason = "TooManyRequests"


class DisruptionRefused(ApiError):
    """Cannot evict pod as it would violate the pod's disruption budget."""

    code = 429
    reason = "TooManyRequests"
    why = ""
    retry_after = 0  # seconds; 0 if it is not known

    @classmethod
    def because(cls, why: str, retry_after: int = 0) -> DisruptionRefused:
        """Returns the error with the reason `why` and the seconds after which to retry."""
        error = cls()
        error.why, error.retry_after = why, retry_after
        return error


class RequestTimeout(ApiError):
    """Timeout: request did not complete within the allotted timeout"""

    code = 504
    reason = "Timeout"


class TooLargeResourceVersion(ApiError):
    """The request asks for a resourceVersion that the server has not reached."""

    code = 504
    reason = "Timeout"


class ContinueExpired(Gone):
    """The continue parameter names a moment that is no longer known."""

    token = ""

    @classmethod
    def at(cls, token: str) -> ContinueExpired:
        """Returns the error with a token that continues the list at the present version."""
        error = cls(
            "The provided continue parameter is too old to display a consistent list result. "
            "You can start a new list without the continue parameter, or use the continue token "
            "in this response to retrieve the remainder of the results. Continuing with the "
            "provided token results in an inconsistent list - objects that were created, "
            "modified, or deleted between the time the first chunk was returned and now may "
            "show up in the list."
        )
        error.token = token
        return error


def _list_by_manager(conflicts: Sequence[tuple[str, str]]) -> Iterator[str]:
    """Yields a line for each manager, and below it one for each of its fields."""
    fields: dict[str, list[str]] = {}
    for manager, field in conflicts:
        fields.setdefault(manager, []).append(field)
    for manager in sorted(fields):
        yield f"conflicts with {manager}:"
        yield from (f"- {field}" for field in fields[manager])


class ApplyConflict(ApiError):
    """Another manager owns fields that the apply would change."""

    code = 409
    reason = "Conflict"
    conflicts: Sequence[tuple[str, str]] = ()

    @classmethod
    def between(cls, conflicts: Sequence[tuple[str, str]]) -> ApplyConflict:
        """Returns the error for conflicts, each a pair of field manager and field."""
        if len(conflicts) == 1:
            manager, field = conflicts[0]
            error = cls(f"Apply failed with 1 conflict: conflict with {manager}: {field}")
        else:
            listed = "\n".join(_list_by_manager(conflicts))
            error = cls(f"Apply failed with {len(conflicts)} conflicts: {listed}")
        error.conflicts = tuple(conflicts)
        return error
