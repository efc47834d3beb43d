from __future__ import annotations

import pytest

from kcm.api.scheme import BUILT_IN
from kcm.apiserver.http_errors import PathNotFound
from kcm.apiserver.request_info import parse


@pytest.mark.parametrize(
    ("path", "expected"),
    [
        ("/api/v1/pods", ("pods", "", "", "")),
        ("/api/v1/namespaces/a/pods/", ("pods", "a", "", "")),
        ("/api/v1/namespaces/a/pods/p", ("pods", "a", "p", "")),
        ("/api/v1/namespaces/a/pods/p/status", ("pods", "a", "p", "status")),
        ("/api/v1/namespaces", ("namespaces", "", "", "")),
        ("/api/v1/namespaces/a", ("namespaces", "", "a", "")),
        ("/api/v1/namespaces/a/finalize", ("namespaces", "", "a", "finalize")),
        ("/api/v1/nodes/n/status", ("nodes", "", "n", "status")),
        ("/apis/apps/v1/namespaces/a/replicasets/r/scale", ("replicasets.apps", "a", "r", "scale")),
    ],
)
def test_paths_name_resource_namespace_name_and_subresource(
    path: str, expected: tuple[str, str, str, str]
) -> None:
    request_target = parse(path, BUILT_IN)
    assert (
        request_target.resource.name,
        request_target.namespace,
        request_target.name,
        request_target.subresource,
    ) == expected


@pytest.mark.parametrize(
    "path",
    ["/", "/api", "/api/v1", "/api/v2/pods", "/apis/apps/v1", "/apis/apps/v2/replicasets",
     "/api/v1/pods/p", "/api/v1/namespaces/a/nodes", "/api/v1/namespaces/a/pods//status",
     "/api/v1/namespaces/a/pods/p/log/more", "/other"],
)  # fmt: skip
def test_other_paths_are_not_found(path: str) -> None:
    with pytest.raises(PathNotFound):
        parse(path, BUILT_IN)
