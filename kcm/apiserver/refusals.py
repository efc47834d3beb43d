"""Refusals that only HTTP knows; those of the store are in `kcm.errors`.

Source: staging/src/k8s.io/apimachinery/pkg/api/errors/errors.go, Kubernetes 1.33.
"""

from __future__ import annotations

from kcm.errors import ApiError


class Unauthorized(ApiError):
    """Unauthorized"""

    code = 401
    reason = "Unauthorized"


class PathNotFound(ApiError):
    """the server could not find the requested resource"""

    code = 404
    reason = "NotFound"


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


class TooLargeResourceVersion(ApiError):
    """The request asks for a resourceVersion that the server has not reached."""

    code = 504
    reason = "Timeout"


class NamespaceTerminating(ApiError):
    """The namespace is being terminated, so nothing new may be created in it."""

    code = 403
    reason = "Forbidden"
