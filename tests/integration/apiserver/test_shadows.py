"""Definitions with the names of built-in kinds hide nothing."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest

from kcm.api import codec
from kcm.api.custom.kinds import CustomResource
from kcm.api.rbac_v1 import ClusterRoleBinding
from kcm.api.scheme import BUILT_IN
from kcm.redisio import RedisIO
from kcm.redisio.embedded import EmbeddedServer
from kcm.store import Store
from kcm.store.definitions import Definitions
from kcm.testing.waiting import until
from tests.integration.apiserver.definitions import crontabs
from tests.integration.apiserver.serving import Live, live

CRDS = "/apis/apiextensions.k8s.io/v1/customresourcedefinitions"
RBAC = "rbac.authorization.k8s.io"
BINDINGS = f"/apis/{RBAC}/v1/clusterrolebindings"


def build_definition(plural: str, kind: str, group: str) -> dict[str, Any]:
    body = crontabs(group)
    name = f"{plural}.{group}"
    approved = {"api-approved.kubernetes.io": "https://github.com/kubernetes/kubernetes/pull/1"}
    body["metadata"] = {"name": name, "annotations": approved}
    body["spec"]["names"] = {"plural": plural, "singular": "s" + plural, "kind": kind}
    body["spec"]["scope"] = "Cluster"
    return body


def conditions(api: Live, name: str) -> dict[str, str]:
    conditions_of_definition = api.get(f"{CRDS}/{name}").get("status", {}).get("conditions", [])
    return {each["type"]: each["status"] for each in conditions_of_definition}


REFUSED = {"NamesAccepted": "False", "Established": "False"}


@pytest.mark.parametrize(
    ("plural", "kind", "group"),
    [
        ("clusterrolebindings", "ClusterRoleBinding", RBAC),
        ("clusterrolebindings", "Other", RBAC),
        ("roles", "Role", RBAC),
        ("endpointslices", "EndpointSlice", "discovery.k8s.io"),
        ("leases", "Lease", "coordination.k8s.io"),
        ("customresourcedefinitions", "CustomResourceDefinition", "apiextensions.k8s.io"),
        ("subjectaccessreviews", "SubjectAccessReview", "authorization.k8s.io"),
    ],
)
def test_the_kind_of_the_system_stays_what_it_is(
    api: Live, plural: str, kind: str, group: str
) -> None:
    before = api.get(f"/apis/{group}/v1")
    openapi = api.get("/openapi/v2")
    api.create(CRDS, build_definition(plural, kind, group))
    name = f"{plural}.{group}"
    until(lambda: conditions(api, name) == REFUSED, "a refusal")
    assert api.get(f"/apis/{group}/v1") == before
    assert api.get("/openapi/v2") == openapi
    assert not any(
        isinstance(version, CustomResource) for version in api.store.scheme.versions(name)
    )
    assert api.client.delete(f"{CRDS}/{name}").is_success
    until(lambda: api.client.get(f"{CRDS}/{name}").status_code == 404, "its end")


def test_nobody_escalates_by_defining_bindings(
    redis_server: EmbeddedServer, tmp_path: Path
) -> None:
    """A user who may define kinds and write bindings, but not bind, gets no binding."""
    name = f"clusterrolebindings.{RBAC}"
    rules = [
        {"verbs": ["*"], "apiGroups": ["apiextensions.k8s.io"], "resources": ["*"]},
        {"verbs": ["*"], "apiGroups": [RBAC], "resources": ["clusterrolebindings"]},
    ]
    with live(redis_server.url, tmp_path) as api:
        roles = f"/apis/{RBAC}/v1/clusterroles"
        api.create(roles, {"metadata": {"name": "definer"}, "rules": rules})
        ref = {"apiGroup": RBAC, "kind": "ClusterRole", "name": "definer"}
        subject = {"apiGroup": RBAC, "kind": "User", "name": "bob"}
        body = {"metadata": {"name": "definer"}, "roleRef": ref, "subjects": [subject]}
        api.create(BINDINGS, body)
        ref = ref | {"name": "cluster-admin"}
        bound = {"metadata": {"name": "me"}, "roleRef": ref, "subjects": [subject]}
        with api.as_user("bobs-token") as bob:
            definition = build_definition("clusterrolebindings", "Other", RBAC)
            until(lambda: bob.post(CRDS, json=definition).is_success)
            until(lambda: conditions(api, name) == REFUSED, "a refusal")
            path = f"/apis/{RBAC}/v1/clusterrolebindings"
            assert bob.post(path, json=bound).status_code == 403
            assert bob.post(path, json=bound | {"kind": "Other"}).status_code in {400, 403}
        count = api.store.count(ClusterRoleBinding.resource)
        # Its name is that of the bindings themselves: they do not go with it.
        assert api.client.delete(f"{CRDS}/{name}").is_success
        until(lambda: api.client.get(f"{CRDS}/{name}").status_code == 404, "its end")
        assert api.store.count(ClusterRoleBinding.resource) == count


def test_one_that_was_accepted_before_is_not_served_after_a_restart(io: RedisIO) -> None:
    store = Store(io)
    body = build_definition("clusterrolebindings", "ClusterRoleBinding", RBAC)
    names = body["spec"]["names"]
    body["status"] = {
        "acceptedNames": names,
        "conditions": [
            {"type": each, "status": "True"} for each in ("NamesAccepted", "Established")
        ],
        "storedVersions": [body["spec"]["versions"][0]["name"]],
    }
    item = store.items.build_create(codec.decode(body, BUILT_IN), keep_status=True)
    store.write([item])[0].get_stored()
    Definitions(store).refresh()
    assert store.scheme.served() == BUILT_IN.served()
