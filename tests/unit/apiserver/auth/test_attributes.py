"""The attributes of requests, as a table."""

from __future__ import annotations

import pytest

from kcm import errors
from kcm.api.scheme import BUILT_IN
from kcm.apiserver.auth import attributes
from kcm.apiserver.auth.attributes import Attributes
from kcm.apiserver.request import Request
from kcm.apiserver.request_info import parse


def of(method: str, url: str) -> Attributes:
    path, _, query = url.partition("?")
    return attributes.of(Request(method, path, query.encode(), {}))


NS = "/api/v1/namespaces"


@pytest.mark.parametrize(
    ("method", "url", "expected"),
    [
        ("GET", "/", Attributes("get", path="/")),
        ("GET", "/api/v1", Attributes("get", path="/api/v1")),
        ("GET", "/apis/apps/v1", Attributes("get", path="/apis/apps/v1")),
        ("POST", "/apis", Attributes("post", path="/apis")),
        ("GET", "//api//v1/pods", Attributes("get", "", "", "v1", name="pods")),
        ("GET", "/metrics/x", Attributes("get", path="/metrics/x")),
        ("GET", "/API/v1/pods", Attributes("get", path="/API/v1/pods")),
        ("GET", "/api/v1/pods", Attributes("list", "", "v1", "pods")),
        ("HEAD", "/api/v1/pods", Attributes("list", "", "v1", "pods")),
        ("HEAD", "/api/v1/pods?watch=1", Attributes("list", "", "v1", "pods")),
        ("GET", "/api/v1/pods?watch=1", Attributes("watch", "", "v1", "pods")),
        ("GET", "/api/v1/pods?watch", Attributes("watch", "", "v1", "pods")),
        ("GET", "/api/v1/pods?watch=0&watch=1", Attributes("list", "", "v1", "pods")),
        ("GET", f"{NS}/a/pods", Attributes("list", "", "v1", "pods", namespace="a")),
        ("GET", f"{NS}/a/pods/x", Attributes("get", "", "v1", "pods", "", "a", "x")),
        ("GET", f"{NS}/a/pods/x?watch=1", Attributes("watch", "", "v1", "pods", "", "a", "x")),
        ("GET", f"{NS}/a/pods/x/log?watch=1", Attributes("get", "", "v1", "pods", "log", "a", "x")),
        ("GET", f"{NS}/a/pods/x/log/y", Attributes("get", "", "v1", "pods", "log", "a", "x")),
        ("DELETE", f"{NS}/a/pods", Attributes("deletecollection", "", "v1", "pods", "", "a")),
        ("DELETE", f"{NS}/a/pods/x", Attributes("delete", "", "v1", "pods", "", "a", "x")),
        ("PUT", f"{NS}/a/pods/x/status",
         Attributes("update", "", "v1", "pods", "status", "a", "x")),
        ("TRACE", f"{NS}/a/pods", Attributes("", "", "v1", "pods", "", "a")),
        ("GET", NS, Attributes("list", "", "v1", "namespaces")),
        ("GET", f"{NS}/a", Attributes("get", "", "v1", "namespaces", "", "a", "a")),
        ("PUT", f"{NS}/a/finalize",
         Attributes("update", "", "v1", "namespaces", "finalize", "a", "a")),
        ("PATCH", "/apis/apps/v1/namespaces/a/replicasets/x/scale",
         Attributes("patch", "apps", "v1", "replicasets", "scale", "a", "x")),
        ("GET", "/api/v1/pods?fieldSelector=metadata.name%3Dx",
         Attributes("list", "", "v1", "pods", name="x", fields=(("metadata.name", "x"),))),
        ("GET", "/api/v1/pods?fieldSelector=metadata.name%3Dx&watch=1",
         Attributes("watch", "", "v1", "pods", name="x", fields=(("metadata.name", "x"),))),
        ("GET", "/api/v1/pods?fieldSelector=spec.nodeName%3Dn,status.phase!%3DFailed",
         Attributes("list", "", "v1", "pods", fields=(("spec.nodeName", "n"),))),
        ("GET", "/api/v1/pods?fieldSelector=metadata.name!%3Dx",
         Attributes("list", "", "v1", "pods")),
        ("GET", "/api/v1/pods?fieldSelector=metadata.name%3Dx/y",
         Attributes("list", "", "v1", "pods", fields=(("metadata.name", "x/y"),))),
        ("GET", "/api/v1/pods?fieldSelector=%3D%3D", Attributes("list", "", "v1", "pods")),
        ("DELETE", "/api/v1/pods?fieldSelector=metadata.name%3Dx",
         Attributes("deletecollection", "", "v1", "pods", fields=(("metadata.name", "x"),))),
    ],
)  # fmt: skip
def test_attributes_are_upstreams(method: str, url: str, expected: Attributes) -> None:
    assert of(method, url) == expected


# TestForbidden (pkg/endpoints/handlers/responsewriters/errors_test.go of k8s.io/apiserver)
@pytest.mark.parametrize(
    ("denied", "reason", "message"),
    [
        (Attributes("GET", path="/whatever"), "",
         'forbidden: User "NAME" cannot GET path "/whatever"'),
        (Attributes("get", resource="pod"), "",
         'pod is forbidden: User "NAME" cannot get resource "pod" in API group "" at the cluster '
         "scope"),
        (Attributes("get", resource="pod", name="mypod"), "",
         'pod "mypod" is forbidden: User "NAME" cannot get resource "pod" in API group "" at the '
         "cluster scope"),
        (Attributes("get", "v2", "", "pod", "quota", "test"), "no rule",
         'pod.v2 is forbidden: User "NAME" cannot get resource "pod/quota" in API group "v2" in '
         'the namespace "test": no rule'),
    ],
)  # fmt: skip
def test_a_denial_is_told_in_upstreams_words(denied: Attributes, reason: str, message: str) -> None:
    assert attributes.forbidden("NAME", denied, reason).message == message


def test_a_watch_that_is_no_truth_is_a_bad_request() -> None:
    with pytest.raises(errors.BadRequest):
        of("GET", "/api/v1/pods?watch=perhaps")


@pytest.mark.parametrize(
    "path",
    [f"{NS}/a/pods/x", f"{NS}/a/pods", "/api/v1/pods", NS, f"{NS}/a", f"{NS}/a/status",
     "/apis/apps/v1/namespaces/a/replicasets/x/scale", "/api/v1/nodes/n"],
)  # fmt: skip
def test_what_is_served_agrees_with_what_was_authorized(path: str) -> None:
    assert attributes.agree(of("GET", path), parse(path, BUILT_IN))


@pytest.mark.parametrize(
    ("asked", "served"),
    [(f"{NS}/a/pods/x", f"{NS}/a/pods/y"), (f"{NS}/a/pods/x", f"{NS}/b/pods/x"),
     (f"{NS}/a/pods/x", f"{NS}/a/secrets/x"), (f"{NS}/a/pods/x", f"{NS}/a/pods/x/log"),
     (f"{NS}/a/pods", f"{NS}/a/pods/x"), (f"{NS}/a/pods", "/api/v1/pods"),
     ("/api/v1/pods?fieldSelector=metadata.name%3Dx", f"{NS}/a/pods/x")],
)  # fmt: skip
def test_anything_else_does_not_agree(asked: str, served: str) -> None:
    assert not attributes.agree(of("GET", asked), parse(served, BUILT_IN))
