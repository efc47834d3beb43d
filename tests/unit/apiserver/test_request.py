from __future__ import annotations

import pytest

from kcm.apiserver.request import head_of


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
