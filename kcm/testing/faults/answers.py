"""The errors with which requests fail, in the words and with the details of Kubernetes.

Source: staging/src/k8s.io/apimachinery/pkg/api/errors/errors.go, Kubernetes 1.33.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass
from typing import Literal

from kcm import errors
from kcm.apiserver import http_errors
from kcm.apiserver.auth import attributes
from kcm.apiserver.auth.attributes import Attributes
from kcm.apiserver.filters.fault_rules import RequestFacts

ErrorCode = Literal[401, 403, 404, 409, 410, 429, 500, 503, 504]

CAUSE = "injected by kcm.testing"  # of a 500, so that nobody looks for it elsewhere
WRITES = frozenset({"create", "update", "patch", "delete", "deletecollection"})
_ANY = WRITES | {"get", "list", "watch"}
_TOO_OLD = "The resourceVersion for the provided list is too old."
_UNABLE = "the server is currently unable to handle the request"


@dataclass(frozen=True)
class Answer:
    """How a code is answered, and to which verbs a server gives it at all."""

    build: Callable[[RequestFacts, int], errors.ApiError]
    verbs: frozenset[str] = _ANY


def _forbidden(facts: RequestFacts, _: int) -> errors.ApiError:
    asked = Attributes(
        facts.verb, facts.group, "", facts.resource, facts.subresource, facts.namespace, facts.name
    )
    return attributes.forbidden(facts.user, asked, "")


def _not_found(facts: RequestFacts, _: int) -> errors.ApiError:
    if not facts.name or facts.verb == "create":
        return http_errors.PathNotFound()
    return errors.NotFound.of(facts.qualified_resource, facts.name)


def _conflict(facts: RequestFacts, _: int) -> errors.ApiError:
    if facts.verb == "create":
        return errors.AlreadyExists.of(facts.qualified_resource, facts.name)
    return errors.Conflict.of(facts.qualified_resource, facts.name)


def _retry(code: int, reason: str, message: str) -> Callable[[RequestFacts, int], errors.ApiError]:
    def build(_: RequestFacts, seconds: int) -> errors.ApiError:
        details = {"retryAfterSeconds": seconds} if seconds else {}
        return http_errors.StatusError.of(
            message=message, reason=reason, code=code, details=details
        )

    return build


ANSWERS: Mapping[int, Answer] = {
    401: Answer(lambda facts, _: http_errors.Unauthorized()),
    403: Answer(_forbidden),
    404: Answer(_not_found),
    409: Answer(_conflict, WRITES),
    410: Answer(lambda facts, _: errors.Gone(_TOO_OLD), frozenset({"list", "watch"})),
    429: Answer(_retry(429, "TooManyRequests", str(http_errors.TooManyRequests()))),
    500: Answer(lambda facts, _: http_errors.InternalError.because(CAUSE)),
    503: Answer(_retry(503, "ServiceUnavailable", _UNABLE)),
    504: Answer(lambda facts, _: http_errors.RequestTimeout()),
}


def check(error: object, verb: str | None) -> None:
    """Raises ValueError unless a request with this verb can fail so."""
    if error in ("timeout", "cut", None):
        return
    answer = ANSWERS.get(error) if isinstance(error, int) else None
    if answer is None:
        codes = ", ".join(map(str, ANSWERS))
        raise ValueError(f"error={error!r} is unknown: use one of {codes}, 'timeout' or 'cut'")
    if verb is not None and verb not in answer.verbs:
        verbs = ", ".join(sorted(answer.verbs))
        raise ValueError(f"a server never answers {verb} with {error}: use a verb of {verbs}")
