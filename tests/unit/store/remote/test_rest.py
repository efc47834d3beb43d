from __future__ import annotations

import json

import pytest

from kcm import errors
from kcm.api.scheme import BUILT_IN
from kcm.store.remote.rest import ServerBusy, error_of, path_of


@pytest.mark.parametrize(
    ("code", "reason", "expected"),
    [
        (404, "NotFound", errors.NotFound),
        (409, "AlreadyExists", errors.AlreadyExists),
        (409, "Conflict", errors.Conflict),
        (410, "Expired", errors.Gone),
        (403, "Forbidden", errors.Forbidden),
        (400, "BadRequest", errors.BadRequest),
        (413, "RequestEntityTooLarge", errors.RequestTooLarge),
        (429, "TooManyRequests", ServerBusy),
        (500, "InternalError", errors.ApiError),
        (500, "", ServerBusy),
        (503, "ServiceUnavailable", ServerBusy),
        (422, "Invalid", errors.ApiError),
        (401, "Unauthorized", errors.ApiError),
    ],
)
def test_a_refusal_is_the_exception_of_the_local_store(
    code: int, reason: str, expected: type[errors.KcmError]
) -> None:
    kcm_error = error_of(code, json.dumps({"message": "why", "reason": reason}).encode())
    assert type(kcm_error) is expected
    assert kcm_error.message == "why"


@pytest.mark.parametrize(
    ("code", "cause", "expected"),
    [
        (403, "NamespaceTerminating", errors.NamespaceTerminating),
        (504, "ResourceVersionTooLarge", errors.Gone),
        (403, "Other", errors.Forbidden),
    ],
)
def test_a_cause_tells_more_than_the_reason(
    code: int, cause: str, expected: type[errors.KcmError]
) -> None:
    reason = {403: "Forbidden", 504: "Timeout"}[code]
    details = {"causes": [{"reason": cause}]}
    status = {"message": "why", "reason": reason, "details": details}
    assert type(error_of(code, json.dumps(status).encode())) is expected


@pytest.mark.parametrize(
    ("code", "expected"),
    [(404, errors.NotFound), (403, errors.Forbidden), (409, errors.Conflict), (410, errors.Gone)],
)
def test_an_answer_without_a_status_is_told_by_its_code(
    code: int, expected: type[errors.KcmError]
) -> None:
    assert type(error_of(code, b"404 page not found")) is expected


@pytest.mark.parametrize("body", [b"", b"<html>", b"[]", b'{"a":1}'])
def test_an_answer_that_is_no_status_is_told_as_it_came(body: bytes) -> None:
    assert "502" in str(error_of(502, body))


def test_paths_are_those_of_the_api() -> None:
    pods, nodes, sets = (BUILT_IN.lookup(name) for name in ("pods", "nodes", "replicasets"))
    assert path_of(pods) == "/api/v1/pods"
    assert path_of(nodes, "", "n") == "/api/v1/nodes/n"
    assert path_of(sets, "a", "b", "status") == "/apis/apps/v1/namespaces/a/replicasets/b/status"
