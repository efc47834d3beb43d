from __future__ import annotations

import asyncio
from contextlib import nullcontext

import pytest
from starlette.types import Message

from kcm import errors
from kcm.apiserver.request import MAX_BODY, Disconnected, head_of, read_body


# After TestGetAPIRequestInfo in
# staging/src/k8s.io/apiserver/pkg/endpoints/request/requestinfo_test.go.
@pytest.mark.parametrize(
    ("method", "path", "stands_for", "query"),
    [
        ("GET", "/api/v1/watch/pods", "/api/v1/pods", {"watch": "true"}),
        ("GET", "/api/v1/watch/nodes/n1", "/api/v1/nodes",
         {"watch": "true", "fieldSelector": "metadata.name=n1"}),
        ("GET", "/api/v1/watch/namespaces/other", "/api/v1/namespaces",
         {"watch": "true", "fieldSelector": "metadata.name=other"}),
        ("GET", "/api/v1/watch/namespaces/other/pods", "/api/v1/namespaces/other/pods",
         {"watch": "true"}),
        ("GET", "/apis/apps/v1/watch/namespaces/o/deployments/d",
         "/apis/apps/v1/namespaces/o/deployments",
         {"watch": "true", "fieldSelector": "metadata.name=d"}),
        ("GET", "/api/v1/watch/pods/a/log", "/api/v1/pods",
         {"watch": "true", "fieldSelector": "metadata.name=a/log"}),
        ("GET", "/api/v1/namespaces/watch/pods", "/api/v1/namespaces/watch/pods", {}),
        ("GET", "/api/v1/namespaces/x/pods/watch/log", "/api/v1/namespaces/x/pods/watch/log", {}),
        ("POST", "/api/v1/watch/pods", "/api/v1/watch/pods", {}),
        ("GET", "/watch/pods", "/watch/pods", {}),
        ("GET", "/api/v1/watch/", "/api/v1/watch/", {}),
    ],
)  # fmt: skip
def test_a_deprecated_path_of_watches_stands_for_a_list_that_watches(
    method: str, path: str, stands_for: str, query: dict[str, str]
) -> None:
    head = head_of({"method": method, "path": path, "query_string": b"limit=5", "headers": []})
    assert (head.path, head.query) == (stands_for, query | {"limit": "5"})


@pytest.mark.parametrize(
    ("parts", "body"),
    [
        ([b""], b""),
        ([b"ab", b"", b"c"], b"abc"),
        ([b"x" * MAX_BODY], b"x" * MAX_BODY),
        ([b"x" * MAX_BODY, b"y"], errors.RequestTooLarge),
        ([b"ab", None], Disconnected),
    ],
    ids=["none", "in parts", "the longest", "too long", "cut off"],
)
def test_a_body_is_read_to_its_end(
    parts: list[bytes | None], body: bytes | type[Exception]
) -> None:
    left, counted = list(parts), list[int]()

    async def receive() -> Message:
        part = left.pop(0)
        if part is None:
            return {"type": "http.disconnect"}
        return {"type": "http.request", "body": part, "more_body": bool(left)}

    with nullcontext() if isinstance(body, bytes) else pytest.raises(body):
        assert asyncio.run(read_body(receive, counted.append)) == body
        assert counted == [len(part) for part in parts if part is not None]
