"""Which requests may run in the event loop."""

from __future__ import annotations

import pytest

from kcm.api.scheme import BUILT_IN
from kcm.apiserver.heavy.lanes import is_short
from kcm.apiserver.request import Request
from kcm.apiserver.request_info import parse

V1 = "/api/v1"
PODS = f"{V1}/namespaces/a/pods"
CRDS = "/apis/apiextensions.k8s.io/v1/customresourcedefinitions"


def ask(method: str, path: str, body: bytes = b"{}", content_type: str = "") -> bool:
    request = Request(method, path, b"", {b"content-type": content_type.encode()}, body)
    return is_short(request, parse(path, BUILT_IN))


@pytest.mark.parametrize("method", ["GET", "PUT", "PATCH", "DELETE"])
@pytest.mark.parametrize("path", [f"{PODS}/p", f"{PODS}/p/status", f"{V1}/nodes/n"])
def test_reads_and_writes_of_one_object_are_short(method: str, path: str) -> None:
    assert ask(method, path)


@pytest.mark.parametrize(
    ("method", "path"),
    [
        ("GET", PODS),
        ("GET", f"{V1}/pods"),
        ("DELETE", PODS),
        ("GET", f"{PODS}/p/log"),
        ("POST", f"{PODS}/p/eviction"),
        ("POST", f"{PODS}/p/binding"),
        ("PUT", "/apis/apps/v1/namespaces/a/deployments/d/scale"),
        ("POST", CRDS),
        ("GET", f"{CRDS}/c"),
        ("POST", "/apis/authentication.k8s.io/v1/tokenreviews"),
        ("POST", "/apis/authorization.k8s.io/v1/subjectaccessreviews"),
        ("GET", "/apis/metrics.k8s.io/v1beta1/nodes/n"),
    ],
)
def test_lists_definitions_reviews_and_other_subresources_are_not(method: str, path: str) -> None:
    assert not ask(method, path)


def test_creating_is_short() -> None:
    assert ask("POST", PODS)


@pytest.mark.parametrize(("size", "expected"), [(16 * 1024, True), (16 * 1024 + 1, False)])
def test_a_large_body_is_not(size: int, expected: bool) -> None:
    assert ask("POST", PODS, b"x" * size) is expected


@pytest.mark.parametrize(
    ("body", "content_type", "expected"),
    [
        (b'{"ownerReferences":[' + b"{}," * 500 + b"{}]}", "application/json", True),
        (b'{"ownerReferences":[' + b"{}," * 501 + b"{}]}", "application/json", False),
        (b"x" * 4096, "application/vnd.kubernetes.protobuf", True),
        (b"x" * 4097, "application/vnd.kubernetes.protobuf", False),
    ],
    ids=["few values", "many values", "few items", "many items"],
)
def test_a_body_of_many_values_is_not(body: bytes, content_type: str, expected: bool) -> None:
    assert ask("POST", PODS, body, content_type) is expected


@pytest.mark.parametrize(
    ("content_type", "expected"),
    [
        ("application/json", True),
        ("application/merge-patch+json", True),
        ("application/vnd.kubernetes.protobuf", True),
        ("application/yaml", False),
        ("Application/YAML; charset=utf-8", False),
        ("application/apply-patch+yaml", False),
    ],
)
def test_yaml_is_not(content_type: str, expected: bool) -> None:
    assert ask("PATCH", f"{PODS}/p", content_type=content_type) is expected
