"""metav1.Status objects for the outcomes of requests.

Source: staging/src/k8s.io/apimachinery/pkg/api/errors/errors.go and
staging/src/k8s.io/apiserver/pkg/endpoints/handlers/responsewriters/status.go, Kubernetes 1.33.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace
from typing import Any

import structlog

from kcm import errors
from kcm.api.scheme import Resource
from kcm.apiserver import http_errors
from kcm.apiserver.http.responses import Response, json_response

log = structlog.get_logger("kcm.apiserver")

RETRY_AFTER = 1  # seconds

_CAUSES = {
    "Invalid value": "FieldValueInvalid",
    "Required value": "FieldValueRequired",
    "Duplicate value": "FieldValueDuplicate",
    "Not found": "FieldValueNotFound",
    "Unsupported value": "FieldValueNotSupported",
    "Forbidden": "FieldValueForbidden",
    "Too long": "FieldValueTooLong",
    "Too many": "FieldValueTooMany",
    "Internal error": "InternalError",
}


def failure(error: Exception) -> dict[str, Any]:
    """Returns the Status of an exception.

    An unexpected exception is logged, and its Status has no details.
    """
    if isinstance(error, errors.ApiError):
        body = _status(error.code, error.reason, error.message, _details(error))
        if isinstance(error, http_errors.PathNotFound):
            body["details"] = {}  # kubectl reads a name from them, and fails if they are absent
        if isinstance(error, http_errors.ContinueExpired):
            body["metadata"] = {"continue": error.token}
        return body
    if isinstance(error, errors.NotReplicated):  # no time to try again: it may have happened
        log.warning("A write may be lost", error=error.message)
        return _status(504, "Timeout", error.message, {})
    if isinstance(error, errors.Temporary):
        if isinstance(error, errors.WritesRefused):  # which no reader of the store notices
            log.warning("Redis refused a write", error=error.message)
        details = {"retryAfterSeconds": RETRY_AFTER}
        return _status(503, "ServiceUnavailable", error.message, details)
    log.error("A request failed unexpectedly", exc_info=error)
    cause = {"message": "an unexpected error; see the server's log"}
    message = f"Internal error occurred: {cause['message']}"
    return _status(500, "InternalError", message, {"causes": [cause]})


def respond_failure(error: Exception, warnings: Sequence[str] = ()) -> Response:
    """Returns the response with the Status of an exception, of which no traceback is kept, and
    with the warnings that the request has got before.
    """
    body = failure(error)
    retry = body.get("details", {}).get("retryAfterSeconds")
    headers = {"retry-after": str(retry)} if retry else {}
    _release_frames(error)
    response = json_response(body, int(body["code"]))
    return replace(response, headers=headers, warnings=list(dict.fromkeys(warnings)))


def _release_frames(error: BaseException | None) -> None:
    """Takes the tracebacks off an error that was answered, and off those that led to it.

    A frame that has such an error as a variable would keep itself, and the body of the request,
    until the next garbage collection.
    """
    while error is not None:
        error.__traceback__ = None
        error = error.__cause__ or error.__context__


def deletion_status(resource: Resource, name: str, uid: str) -> dict[str, Any]:
    """Returns the Status of a delete that removed the object."""
    details = {"name": name, "group": resource.group, "kind": resource.plural, "uid": uid}
    return success({field: value for field, value in details.items() if value})


def success(details: dict[str, Any] | None = None) -> dict[str, Any]:
    """Returns a Status of success."""
    body = {"kind": "Status", "apiVersion": "v1", "metadata": {}, "status": "Success"}
    return body | ({"details": details} if details else {})


def _status(code: int, reason: str, message: str, details: dict[str, Any]) -> dict[str, Any]:
    return {
        "kind": "Status",
        "apiVersion": "v1",
        "metadata": {},
        "status": "Failure",
        "message": message,
        **({"reason": reason} if reason else {}),
        **({"details": details} if details else {}),
        "code": code,
    }


def _details(error: errors.ApiError) -> dict[str, Any]:
    details: dict[str, Any] = {"name": error.name} if error.name else {}
    if error.resource:
        details |= _kind(error)
    if isinstance(error, errors.Invalid):
        details["causes"] = [_cause(fault) for fault in error.causes]
    if isinstance(error, errors.NamespaceTerminating):
        cause = {"reason": "NamespaceTerminating", "message": error.message}
        details["causes"] = [cause | {"field": "metadata.namespace"}]
    if isinstance(error, http_errors.ApplyConflict):
        details["causes"] = [
            {"reason": "FieldManagerConflict", "message": f"conflict with {who}", "field": field}
            for who, field in error.conflicts
        ]
    if isinstance(error, http_errors.StatusError):
        return dict(error.details)
    if isinstance(error, http_errors.InternalError):
        details["causes"] = [{"message": error.cause}]
    if isinstance(error, http_errors.PolicyDenied):
        details["causes"] = [{"message": why} for why in error.causes]
    if isinstance(error, http_errors.TooLargeResourceVersion):
        cause = {"reason": "ResourceVersionTooLarge", "message": "Too large resource version"}
        details |= {"causes": [cause], "retryAfterSeconds": RETRY_AFTER}
    if isinstance(error, http_errors.DisruptionRefused):
        details["causes"] = [{"reason": "DisruptionBudget", "message": error.why}]
        if error.retry_after:
            details["retryAfterSeconds"] = error.retry_after
    elif error.code == 429:
        details["retryAfterSeconds"] = RETRY_AFTER
    return details


def _kind(error: errors.ApiError) -> dict[str, str]:
    plural, _, group = error.resource.partition(".")
    kind = plural
    if isinstance(error, errors.Invalid):  # here upstream has the kind, otherwise the resource
        kind = error.kind.partition(".")[0] or plural
    return {"kind": kind} | ({"group": group} if group else {})


def _cause(fault: errors.FieldError) -> dict[str, str]:
    return {
        "reason": _CAUSES.get(fault.type, "FieldValueInvalid"),
        "message": str(fault).removeprefix(f"{fault.field}: "),
        "field": fault.field,
    }
