from __future__ import annotations

import json
import socket
from collections.abc import Iterator, Sequence
from contextlib import contextmanager

import httpx
import pytest

from kcm import errors
from kcm.api.scheme import BUILT_IN
from kcm.store.remote.rest import ResponseLines, ServerBusy, error_of, path_of


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


class Connected:
    """The network stream of a response: a socket."""

    def __init__(self, channel: socket.socket) -> None:
        self._channel = channel

    def get_extra_info(self, info: str) -> socket.socket:
        return self._channel


class Pieces(httpx.SyncByteStream):
    """A body that comes in these pieces."""

    def __init__(self, pieces: Sequence[bytes]) -> None:
        self._pieces = pieces

    def __iter__(self) -> Iterator[bytes]:
        return iter(self._pieces)


@contextmanager
def response_of(*pieces: bytes) -> Iterator[ResponseLines]:
    with socket.socket() as channel:
        extensions = {"network_stream": Connected(channel)}
        yield ResponseLines(httpx.Response(200, stream=Pieces(pieces), extensions=extensions))


@pytest.mark.parametrize(
    "pieces",
    [(b"a\nbc\n",), (b"a", b"\nb", b"c", b"\n"), (b"a\n\nb", b"c\n"), (b"", b"a\nbc", b"\n")],
)
def test_lines_are_whole_however_they_come(pieces: Sequence[bytes]) -> None:
    with response_of(*pieces) as lines:
        assert list(lines) == [b"a", b"bc"]


def test_a_line_that_is_cut_is_no_line() -> None:
    with response_of(b"a\nb") as lines:
        read = iter(lines)
        assert next(read) == b"a"
        with pytest.raises(errors.StoreUnavailable, match="within a line"):
            next(read)
