"""Which writes a child process can make."""

from __future__ import annotations

from typing import cast

import pytest

from kcm.api.scheme import BUILT_IN, Resource
from kcm.apiserver.auth.attributes import NODES, User
from kcm.apiserver.auth.authorizer import AlwaysAllow, AlwaysDeny, Caller
from kcm.apiserver.heavy.requests import HeavyWrite, find_heavy_write
from kcm.apiserver.request import Request
from kcm.apiserver.request_info import parse
from kcm.store.admission.chain import AdmissionChain

MAPS = "/api/v1/namespaces/a/configmaps"
JANE = User("jane")


class Deciding:
    """Finds what decides about writes of one kind."""

    def __init__(self, operation: str = "", plural: str = "") -> None:
        self._decided = operation, plural

    def decides(self, resource: Resource, subresource: str, operation: str) -> bool:
        return (operation, resource.plural) == self._decided


def find(
    method: str,
    path: str,
    *,
    user: User = JANE,
    deciding: Deciding | None = None,
    allowed: bool = True,
) -> HeavyWrite | None:
    request = Request(method, path, b"", {})
    caller = Caller(user, AlwaysAllow() if allowed else AlwaysDeny())
    admission = cast("AdmissionChain", deciding or Deciding())  # all that it asks
    return find_heavy_write(request, parse(path, BUILT_IN), caller, admission)


@pytest.mark.parametrize(
    ("method", "path"),
    [
        ("POST", MAPS),
        ("PUT", f"{MAPS}/m"),
        ("PATCH", f"{MAPS}/m"),
        ("PATCH", "/api/v1/nodes/n/status"),
        ("POST", "/apis/apps/v1/namespaces/a/deployments"),
    ],
)
def test_it_can_write_an_object_or_its_status(method: str, path: str) -> None:
    write = find(method, path)
    assert write is not None
    assert (write.user, write.creates.allowed) == (JANE, True)


def test_it_knows_whether_the_user_may_create_the_object() -> None:
    write = find("PUT", f"{MAPS}/m", allowed=False)
    assert write is not None
    assert not write.creates.allowed


@pytest.mark.parametrize(
    ("method", "path"),
    [
        ("GET", MAPS),
        ("GET", f"{MAPS}/m"),
        ("DELETE", f"{MAPS}/m"),
        ("DELETE", MAPS),
        ("POST", f"{MAPS}/m"),
        ("POST", "/api/v1/configmaps"),
        ("PATCH", f"{MAPS}/m/status"),
        ("PUT", "/apis/apps/v1/namespaces/a/deployments/d/scale"),
        ("POST", "/api/v1/namespaces/a/pods/p/eviction"),
        ("POST", "/apis/authorization.k8s.io/v1/subjectaccessreviews"),
    ],
)
def test_it_can_do_nothing_else(method: str, path: str) -> None:
    assert find(method, path) is None


@pytest.mark.parametrize(
    "path",
    [
        "/apis/rbac.authorization.k8s.io/v1/clusterroles",
        "/apis/admissionregistration.k8s.io/v1/validatingadmissionpolicies",
        "/apis/apiextensions.k8s.io/v1/customresourcedefinitions",
        "/apis/certificates.k8s.io/v1/certificatesigningrequests",
    ],
)
def test_it_cannot_write_what_depends_on_permissions(path: str) -> None:
    assert find("POST", path) is None


def test_it_cannot_write_for_a_node_nor_where_somebody_decides() -> None:
    assert find("POST", MAPS, user=User("system:node:n", groups=(NODES,))) is None
    for operation in ("CREATE", "UPDATE"):
        assert find("PUT", f"{MAPS}/m", deciding=Deciding(operation, "configmaps")) is None
    assert find("PUT", f"{MAPS}/m", deciding=Deciding("UPDATE", "secrets")) is not None
