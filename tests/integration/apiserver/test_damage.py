"""A damaged object behind the API server: it can be deleted, and all else is served."""

from __future__ import annotations

import pytest

from kcm.apiserver.bootstrap.cluster import ClusterBootstrap
from kcm.store import damage
from kcm.testing.waiting import until
from tests.integration.apiserver.kubectl import Kubectl
from tests.integration.apiserver.serving import Live
from tests.integration.store.damages import DAMAGES, Damage
from tests.new_objects import pod

PODS = "/api/v1/namespaces/default/pods"
ROLES = "/apis/rbac.authorization.k8s.io/v1/clusterroles"
BINDINGS = "/apis/rbac.authorization.k8s.io/v1/clusterrolebindings"
every_damage = pytest.mark.parametrize("harm", DAMAGES.values(), ids=list(DAMAGES))


def names(api: Live, path: str = PODS) -> list[str]:
    return [item["metadata"]["name"] for item in api.get(path)["items"]]


def damage_object(api: Live, harm: Damage, resource: str, key: str) -> None:
    harm(api.store.io, api.store.io.keys.object(resource, key))


def forget_caches(api: Live) -> None:
    """Makes the server list all kinds again, as after a restart of Redis."""
    api.store.io.execute("HSET", api.store.io.keys.meta(), "run_id", "another")
    api.store.io.attach()


@every_damage
def test_the_others_are_served_and_it_can_be_deleted(api: Live, harm: Damage) -> None:
    for name in ("a", "bad", "c"):
        api.store.create(pod(name))
    damage_object(api, harm, "pods", "default/bad")
    forget_caches(api)
    until(lambda: names(api) == ["a", "c"], "a list without it", words=lambda: str(names(api)))
    assert api.client.get("/readyz").status_code == 200
    assert ("pods", "default/bad") in damage.read_damaged(api.store.io)
    gone = api.client.delete(f"{PODS}/bad")
    assert gone.status_code == 200, gone.text
    assert gone.json()["metadata"]["name"] == "bad"
    api.store.create(pod("bad"))
    assert names(api) == ["a", "bad", "c"]
    for name in ("a", "bad", "c"):
        assert api.client.delete(f"{PODS}/{name}", params={"gracePeriodSeconds": 0}).is_success


@every_damage
def test_roles_and_bindings_go_on(api: Live, harm: Damage) -> None:
    rule = {"verbs": ["get"], "apiGroups": [""], "resources": ["pods"]}
    ref = {"apiGroup": "rbac.authorization.k8s.io", "kind": "ClusterRole", "name": "view"}
    api.create(ROLES, {"metadata": {"name": "bad"}, "rules": [rule]})
    api.create(BINDINGS, {"metadata": {"name": "bad"}, "roleRef": ref})
    for path in (ROLES, BINDINGS):
        resource = path.rpartition("/")[2] + ".rbac.authorization.k8s.io"
        damage_object(api, harm, resource, "bad")
    forget_caches(api)
    until(lambda: "bad" not in names(api, ROLES) + names(api, BINDINGS), "lists without it")
    assert api.client.get("/readyz").status_code == 200
    with api.as_user("janes-token") as jane:
        assert jane.get(PODS).status_code == 403
    for path in (ROLES, BINDINGS):
        assert api.client.delete(f"{path}/bad").is_success
        assert api.client.get(f"{path}/bad").status_code == 404


@pytest.mark.parametrize(
    "entry",
    [
        ("type", "ADDED", "key", "default/x", "object", "rubbish"),
        ("type", "MODIFIED", "key", "default/a", "object", "{}"),
        ("type", "DELETED", "key", "default/x", "object", "[]"),
        ("type", "ADDED", "key", "default/x", "object", "[" * 5000),
        ("type", "ADDED", "key", "default/x", "object", b"\xff"),
    ],
)
def test_an_entry_of_the_log_that_cannot_be_read_is_passed_over(
    api: Live, entry: tuple[str, ...]
) -> None:
    api.store.create(pod("a"))
    version = api.get(PODS)["metadata"]["resourceVersion"]
    io = api.store.io
    io.execute("XADD", io.keys.watch("pods"), f"{int(version) + 1}-0", *entry)
    api.store.create(pod("b"))
    assert names(api) == ["a", "b"]
    params = {"watch": "1", "resourceVersion": version, "timeoutSeconds": "1"}
    lines = api.client.get(PODS, params=params).text.splitlines()
    assert len(lines) == 1
    assert '"name":"b"' in lines[0]
    for name in "ab":
        api.client.delete(f"{PODS}/{name}", params={"gracePeriodSeconds": 0})


@every_damage
def test_damaged_objects_of_every_cluster_are_replaced(api: Live, harm: Damage) -> None:
    for role in ("cluster-admin", "view"):
        damage_object(api, harm, "clusterroles.rbac.authorization.k8s.io", role)
    damage_object(api, harm, "namespaces", "kube-public")
    damage_object(api, harm, "secrets", "kube-system/kubelet-api-key")
    damage_object(api, harm, "priorityclasses.scheduling.k8s.io", "system-node-critical")
    ClusterBootstrap(api.store).ensure()
    forget_caches(api)
    until(lambda: {"cluster-admin", "view"} <= set(names(api, ROLES)), "the roles")
    assert "kube-public" in names(api, "/api/v1/namespaces")
    assert api.client.get("/readyz").status_code == 200


def test_kubectl_shows_the_others_and_deletes_it(api: Live, kubectl: Kubectl) -> None:
    namespace = kubectl.namespace
    for name in ("a", "bad"):
        api.store.create(pod(name).with_metadata(namespace=namespace))
    damage_object(api, DAMAGES["too deep"], "pods", f"{namespace}/bad")
    forget_caches(api)
    until(lambda: "bad" not in kubectl("get", "pods", "-o", "name"), "a list without it")
    assert "pod/a" in kubectl("get", "pods", "-o", "name")
    kubectl("delete", "pod", "bad", "--wait=false")
    api.store.create(pod("bad").with_metadata(namespace=namespace))
    assert "pod/bad" in kubectl("get", "pods", "-o", "name")
