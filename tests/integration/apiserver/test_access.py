"""Authorization over HTTP."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from contextlib import ExitStack
from typing import Any

import httpx
import pytest

from kcm.apiserver.auth import bootstrap
from tests.integration.apiserver.manifests import pod
from tests.integration.apiserver.serving import Live

PODS = "/api/v1/namespaces/default/pods"
RBAC = "/apis/rbac.authorization.k8s.io/v1"
ROLES = f"{RBAC}/namespaces/default/roles"
BINDINGS = f"{RBAC}/namespaces/default/rolebindings"

WRITE = "get list create update patch delete"

As = Callable[..., httpx.Client]


@pytest.fixture
def as_user(api: Live) -> Iterator[As]:
    """Yields a function that returns clients by their tokens."""
    with ExitStack() as stack:
        yield lambda token, **headers: stack.enter_context(api.as_user(token, **headers))


def rule(verbs: str, resources: str, group: str = "", **more: Any) -> dict[str, Any]:
    return {"verbs": verbs.split(), "resources": resources.split(), "apiGroups": [group]} | more


def grant(api: Live, name: str, user: str, *rules: dict[str, Any]) -> None:
    """Creates a role in `default` and binds it."""
    api.create(ROLES, {"metadata": {"name": name}, "rules": rules})
    subject = {"kind": "User", "name": user, "apiGroup": "rbac.authorization.k8s.io"}
    reference = {"kind": "Role", "name": name, "apiGroup": "rbac.authorization.k8s.io"}
    body = {"metadata": {"name": name}, "subjects": [subject], "roleRef": reference}
    api.create(BINDINGS, body)
    api.get(ROLES)  # as fresh as the write: the caches have it now
    api.get(BINDINGS)


def read_refusal(response: httpx.Response, code: int = 403) -> str:
    body = response.json()
    assert (response.status_code, body["kind"], body["code"]) == (code, "Status", code), body
    return str(body["message"])


def test_nobody_gets_401_for_everything_but_health_and_version(api: Live, as_user: As) -> None:
    nobody = as_user("")
    for path in ("/livez", "/readyz", "/healthz", "/version"):
        assert nobody.get(path).status_code == 200
    for path in ("/", "/api", "/apis", "/openapi/v2", "/metrics", "/readyz/redis", PODS, "/none",
                 f"{PODS}?watch=1", "//livez", "/livez/../metrics",
                 "/livez%2f..%2fmetrics"):  # fmt: skip
        assert read_refusal(nobody.get(path), 401) == "Unauthorized"
    assert read_refusal(as_user("wrong").get("/livez"), 401) == "Unauthorized"


def test_a_refusal_reads_as_upstreams(api: Live, as_user: As) -> None:
    jane = as_user("janes-token")
    assert read_refusal(jane.get(PODS)) == (
        'pods is forbidden: User "jane" cannot list resource "pods" in API group "" in the '
        'namespace "default"'
    )
    body = jane.delete("/api/v1/nodes/n1").json()
    assert body["message"] == (
        'nodes "n1" is forbidden: User "jane" cannot delete resource "nodes" in API group "" at '
        "the cluster scope"
    )
    assert body["details"] == {"name": "n1", "kind": "nodes"}
    assert body["reason"] == "Forbidden"
    sets = "/apis/apps/v1/namespaces/default/replicasets/web/scale"
    assert read_refusal(jane.patch(sets, json={})) == (
        'replicasets.apps "web" is forbidden: User "jane" cannot patch resource '
        '"replicasets/scale" in API group "apps" in the namespace "default"'
    )
    assert read_refusal(jane.get("/metrics")) == 'forbidden: User "jane" cannot get path "/metrics"'


def test_everybody_who_is_known_may_discover(as_user: As) -> None:
    jane = as_user("janes-token")
    for path in ("/api", "/api/v1", "/apis", "/apis/apps/v1", "/openapi/v2", "/version"):
        assert jane.get(path).status_code == 200, path


def test_a_role_gives_exactly_what_it_says(api: Live, as_user: As) -> None:
    grant(api, "reader", "bob", rule("get list", "pods"))
    api.create(PODS, pod("readable"))
    bob = as_user("bobs-token")
    assert bob.get(PODS).status_code == 200
    assert bob.get(f"{PODS}/readable").status_code == 200
    assert "cannot list" in read_refusal(bob.get("/api/v1/pods"))
    assert "cannot list" in read_refusal(bob.get("/api/v1/namespaces/kube-system/pods"))
    for query in ("watch=1", "watch=true", "watch", "watch=True&watch=0"):
        assert "cannot watch" in read_refusal(bob.get(f"{PODS}?{query}"))
        assert "cannot watch" in read_refusal(bob.get(f"{PODS}/readable?{query}"))
    assert read_refusal(bob.get(f"{PODS}?watch=yes"), 400)
    assert 'resource "pods/status"' in read_refusal(bob.get(f"{PODS}/readable/status"))
    assert 'resource "pods/log"' in read_refusal(bob.get(f"{PODS}/readable/log"))
    assert "cannot create" in read_refusal(bob.post(PODS, json=pod("x"), params={"dryRun": "All"}))
    assert "cannot patch" in read_refusal(bob.patch(f"{PODS}/readable?dryRun=All", json={}))
    assert "cannot delete " in read_refusal(bob.delete(f"{PODS}/readable"))
    assert "cannot deletecollection" in read_refusal(bob.delete(PODS))
    assert "pods/eviction" in read_refusal(bob.post(f"{PODS}/readable/eviction", json={}))


def test_the_right_to_get_a_stream_is_none_to_open_it_by_websocket(api: Live, as_user: As) -> None:
    streams = ("exec", "attach", "portforward")
    grant(api, "getter", "bob", rule("get", " ".join(f"pods/{stream}" for stream in streams)))
    api.create(PODS, pod("streamed"))
    bob = as_user("bobs-token", connection="Upgrade", upgrade="websocket")
    for stream in streams:
        refused = read_refusal(bob.get(f"{PODS}/streamed/{stream}?command=id"))
        assert f'cannot create resource "pods/{stream}"' in refused
    grant(api, "opener", "bob", rule("create", "pods/exec"))
    opened = read_refusal(bob.get(f"{PODS}/streamed/exec?command=id"), 400)
    assert opened == "pod streamed does not have a host assigned"


@pytest.mark.parametrize(
    "path",
    ["//api/v1/namespaces/default/secrets", "/api//v1/namespaces/default/secrets",
     "/api/v1/namespaces//secrets", "/api/v1/./secrets",
     "/api/v1/namespaces/default/pods/../secrets",
     "/api/v1/namespaces/default/pods%2f..%2fsecrets", "/API/v1/secrets", "/api/v1/Secrets",
     "/api/v1/namespaces/default/pods/x/../../secrets/y", "/api/v1/namespaces/default/secrets/",
     "/api/v1/namespaces/default/pods;/secrets", "/api/v1/namespaces/default%2fsecrets",
     "/api/v1/watch/secrets", "/api/v1/namespaces/default/secrets%00", "/apis//v1/secrets",
     "/api/v1/proxy/secrets"],
)  # fmt: skip
def test_no_spelling_of_a_path_gets_around_the_roles(api: Live, as_user: As, path: str) -> None:
    bob = as_user("bobs-token")
    request = bob.build_request("GET", api.url + "/")
    request.url = request.url.copy_with(raw_path=path.encode())
    assert read_refusal(bob.send(request))


def test_names_narrow_a_role_and_a_list_by_name_is_one(api: Live, as_user: As) -> None:
    maps = "/api/v1/namespaces/default/configmaps"
    for name in ("mine", "theirs"):
        api.create(maps, {"metadata": {"name": name}, "data": {"a": name}})
    only = rule("get list watch update delete create", "configmaps", resourceNames=["mine"])
    grant(api, "one-map", "bob", only)
    bob = as_user("bobs-token")
    assert bob.get(f"{maps}/mine").status_code == 200
    read_refusal(bob.get(f"{maps}/theirs"))
    read_refusal(bob.get(maps))
    body = bob.get(maps, params={"fieldSelector": "metadata.name=mine"}).json()
    assert [item["metadata"]["name"] for item in body["items"]] == ["mine"]
    for selector in ("metadata.name!=theirs", "metadata.name=theirs", "metadata.namespace=default",
                     "metadata.name=theirs,metadata.name=mine"):  # fmt: skip
        read_refusal(bob.get(maps, params={"fieldSelector": selector}))
    both = bob.get(maps, params=[("fieldSelector", "metadata.name=mine"), ("fieldSelector", "")])
    assert [item["metadata"]["name"] for item in both.json()["items"]] == ["mine"]
    narrow = {"fieldSelector": "metadata.name=mine"}
    assert "deletecollection" in read_refusal(bob.delete(maps, params=narrow))
    assert "cannot create" in read_refusal(bob.post(maps, json={"metadata": {"name": "mine"}}))


def test_an_apply_that_creates_needs_the_right_to_create(api: Live, as_user: As) -> None:
    grant(api, "patcher", "jane", rule("patch get", "configmaps"))
    jane = as_user("janes-token")
    path = "/api/v1/namespaces/default/configmaps/applied"
    body = {"apiVersion": "v1", "kind": "ConfigMap", "metadata": {"name": "applied"}}

    def apply(client: httpx.Client) -> httpx.Response:
        media = {"content-type": "application/apply-patch+yaml"}
        return client.patch(f"{path}?fieldManager=t", headers=media, json=body)

    assert "cannot create" in read_refusal(apply(jane))
    assert apply(api.client).status_code == 201
    assert apply(jane).status_code == 200


def test_nobody_gives_away_more_than_they_have(api: Live, as_user: As) -> None:
    grant(api, "role-writer", "bob", rule(WRITE, "roles rolebindings", "rbac.authorization.k8s.io"))
    bob = as_user("bobs-token")
    wanted = {"metadata": {"name": "big"}, "rules": [rule("get list", "secrets")]}
    message = read_refusal(bob.post(ROLES, json=wanted))
    assert message == (
        'roles.rbac.authorization.k8s.io "big" is forbidden: user "bob" '
        '(groups=["system:authenticated"]) is attempting to grant RBAC permissions not currently '
        'held:\n{APIGroups:[""], Resources:["secrets"], Verbs:["get" "list"]}'
    )
    read_refusal(bob.post(ROLES, json=wanted, params={"dryRun": "All"}))
    small = {"metadata": {"name": "small"}, "rules": []}
    assert bob.post(ROLES, json=small).status_code == 201
    more = [{"op": "add", "path": "/rules", "value": wanted["rules"]}]
    media = {"content-type": "application/json-patch+json"}
    read_refusal(bob.patch(f"{ROLES}/small", json=more, headers=media))
    read_refusal(bob.put(f"{ROLES}/small", json=wanted | {"metadata": {"name": "small"}}))
    applied = {"apiVersion": "rbac.authorization.k8s.io/v1", "kind": "Role", **wanted}
    media = {"content-type": "application/apply-patch+yaml"}
    read_refusal(bob.patch(f"{ROLES}/big?fieldManager=x", json=applied, headers=media))
    group = "rbac.authorization.k8s.io"
    big = {"kind": "ClusterRole", "name": "cluster-admin", "apiGroup": group}
    subjects = [{"kind": "User", "name": "bob"}]
    binding = {"metadata": {"name": "mine"}, "subjects": subjects, "roleRef": big}
    message = read_refusal(bob.post(BINDINGS, json=binding))
    assert 'APIGroups:["*"], Resources:["*"], Verbs:["*"]' in message
    binding["roleRef"] = big | {"kind": "Role", "name": "small"}
    assert bob.post(BINDINGS, json=binding).status_code == 201


def test_escalate_and_bind_are_rights_of_their_own(api: Live, as_user: As) -> None:
    rights = [rule("create escalate", "roles", "rbac.authorization.k8s.io"),
              rule("create", "rolebindings", "rbac.authorization.k8s.io"),
              rule("bind", "clusterroles", "rbac.authorization.k8s.io",
                   resourceNames=["view"])]  # fmt: skip
    grant(api, "delegate", "jane", *rights)
    jane = as_user("janes-token")
    wanted = {"metadata": {"name": "escalated"}, "rules": [rule("get", "secrets")]}
    assert jane.post(ROLES, json=wanted).status_code == 201
    for role, code in (("view", 201), ("edit", 403)):
        body = {
            "metadata": {"name": f"bound-{role}"},
            "subjects": [{"kind": "User", "name": "somebody"}],
            "roleRef": {"kind": "ClusterRole", "name": role,
                        "apiGroup": "rbac.authorization.k8s.io"},
        }  # fmt: skip
        assert jane.post(BINDINGS, json=body).status_code == code


def test_the_roles_of_every_cluster_are_there_and_bound(api: Live, as_user: As) -> None:
    names = {item["metadata"]["name"] for item in api.get(f"{RBAC}/clusterroles")["items"]}
    assert {"cluster-admin", "admin", "edit", "view", "system:discovery"} <= names
    view = {
        "metadata": {"name": "jane-views"},
        "subjects": [{"kind": "Group", "name": "dev"}],
        "roleRef": {"kind": "ClusterRole", "name": "view", "apiGroup": "rbac.authorization.k8s.io"},
    }
    namespace = {"metadata": {"name": "viewed"}}
    api.create("/api/v1/namespaces", namespace)
    api.create(f"{RBAC}/namespaces/viewed/rolebindings", view)
    api.get(BINDINGS)
    jane = as_user("janes-token")
    assert jane.get("/api/v1/namespaces/viewed/pods").status_code == 200
    assert jane.get("/api/v1/namespaces/viewed").status_code == 200
    read_refusal(jane.get("/api/v1/namespaces/viewed/secrets"))
    read_refusal(jane.post("/api/v1/namespaces/viewed/pods", json=pod("x")))


def test_a_second_start_writes_nothing_and_brings_back_what_was_taken(api: Live) -> None:
    roles = f"{RBAC}/clusterroles"
    before = api.store.resource_version()
    bootstrap.ensure(api.store)
    assert api.store.resource_version() == before
    api.patch(f"{roles}/system:monitoring", {"rules": None})
    api.client.delete(f"{RBAC}/clusterrolebindings/system:monitoring")
    off = {"rbac.authorization.kubernetes.io/autoupdate": "false"}
    api.patch(f"{roles}/system:node-proxier", {"rules": None, "metadata": {"annotations": off}})
    bootstrap.ensure(api.store)
    assert "/metrics" in api.get(f"{roles}/system:monitoring")["rules"][0]["nonResourceURLs"]
    assert api.get(f"{RBAC}/clusterrolebindings/system:monitoring")
    assert "rules" not in api.get(f"{roles}/system:node-proxier")


def test_impersonation_is_checked_piece_by_piece(api: Live, as_user: As) -> None:
    assert read_refusal(as_user("bobs-token", **{"impersonate-user": "jane"}).get(PODS)) == (
        'users "jane" is forbidden: User "bob" cannot impersonate resource "users" in API group '
        '"" at the cluster scope'
    )
    role = {"metadata": {"name": "may-be-jane"},
            "rules": [rule("impersonate", "users", resourceNames=["jane"]),
                      rule("impersonate", "groups", resourceNames=["dev"])]}  # fmt: skip
    api.create(f"{RBAC}/clusterroles", role)
    api.create(
        f"{RBAC}/clusterrolebindings",
        {"metadata": {"name": "may-be-jane"}, "subjects": [{"kind": "User", "name": "bob"}],
         "roleRef": {"kind": "ClusterRole", "name": "may-be-jane",
                     "apiGroup": "rbac.authorization.k8s.io"}},
    )  # fmt: skip
    api.get(f"{RBAC}/clusterrolebindings")
    who = "/apis/authentication.k8s.io/v1/selfsubjectreviews"
    jane = as_user("bobs-token", **{"impersonate-user": "jane", "impersonate-group": "dev"})
    answer = jane.post(who, json={}).json()
    assert answer["status"]["userInfo"] == {
        "username": "jane", "groups": ["dev", "system:authenticated"],
    }  # fmt: skip
    masters = {"impersonate-user": "jane", "impersonate-group": "system:masters"}
    assert 'groups "system:masters" is forbidden' in read_refusal(
        as_user("bobs-token", **masters).get(PODS)
    )
    extra = {"impersonate-user": "jane", "impersonate-extra-scopes": "all"}
    assert 'resource "userextras/scopes"' in read_refusal(as_user("bobs-token", **extra).get(PODS))
    assert read_refusal(as_user("bobs-token", **{"impersonate-group": "dev"}).get(PODS), 400)
    several = httpx.Headers([("impersonate-user", "jane"), ("impersonate-group", "dev"),
                             ("impersonate-group", "system:masters")])  # fmt: skip
    assert read_refusal(as_user("bobs-token").get(PODS, headers=several))


def test_a_review_answers_and_is_not_stored(api: Live, as_user: As) -> None:
    path = "/apis/authorization.k8s.io/v1/selfsubjectaccessreviews"
    asks = {"spec": {"resourceAttributes": {"verb": "list", "resource": "nodes"}}}
    assert as_user("janes-token").post(path, json=asks).json()["status"] == {"allowed": False}
    assert api.create(path, asks)["status"]["allowed"]
    for method in ("GET", "PUT", "DELETE", "PATCH"):
        assert read_refusal(api.client.request(method, path), 405)
    assert read_refusal(api.client.get(f"{path}?watch=1"), 405)
    assert read_refusal(api.client.post(path, json={"spec": {}}), 422)
    others = "/apis/authorization.k8s.io/v1/subjectaccessreviews"
    read_refusal(as_user("janes-token").post(others, json=asks))
    about = {"spec": asks["spec"] | {"user": "x", "groups": ["system:masters"]}}
    assert api.create(others, about)["status"]["allowed"]
    tokens = "/apis/authentication.k8s.io/v1/tokenreviews"
    status = api.create(tokens, {"spec": {"token": "janes-token"}})["status"]
    assert status["user"]["username"] == "jane"
    assert status["authenticated"] is True
    assert status["user"]["groups"] == ["dev", "system:authenticated"]
    wrong = api.create(tokens, {"spec": {"token": "none"}})["status"]
    assert wrong == {"error": "invalid bearer token"}


def test_decisions_are_counted_under_upstreams_names(api: Live, as_user: As) -> None:
    as_user("wrong").get(PODS)
    as_user("bobs-token").get("/metrics")
    page = api.client.get("/metrics").text
    for line in (
        'authentication_attempts_total{result="failure"}',
        'authorization_attempts_total{result="denied"}',
        'authenticated_user_requests_total{username="other"}',
        'apiserver_current_inflight_requests{request_kind="mutating"} 0.0',
    ):  # fmt: skip
        assert line in page
