"""APIs of another server, a TLS process of its own that believes a front proxy's headers only."""

from __future__ import annotations

import hashlib
import json
import shutil
import socket
import ssl
import tempfile
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import httpx
import pytest

from kcm.redisio.embedded import EmbeddedServer
from kcm.testing.waiting import until
from tests.integration.apiserver import extension
from tests.integration.apiserver.extension import (
    BASE,
    GROUP,
    SERVICES,
    FrontProxy,
    api_service,
    make_service,
    wait_for_reason,
)
from tests.integration.apiserver.kubectl import Kubectl
from tests.integration.apiserver.serving import TOKEN, Live, live

NAME = "v1alpha1.fruits.example.com"
FRUITS = f"{BASE}/namespaces/default/fruits"
V2 = "application/json;g=apidiscovery.k8s.io;v=v2;as=APIGroupDiscoveryList"


@pytest.fixture(scope="module")
def proxy() -> Iterator[FrontProxy]:
    folder = Path(tempfile.mkdtemp(prefix="kcm-proxy-"))
    yield FrontProxy.make(folder)
    shutil.rmtree(folder, ignore_errors=True)


@pytest.fixture(scope="module")
def api(redis_server: EmbeddedServer, proxy: FrontProxy) -> Iterator[Live]:
    with live(redis_server.url, proxy.folder, aggregation=proxy.options()) as running:
        make_service(running, "fruits")
        yield running


@pytest.fixture(scope="module")
def shop(api: Live, proxy: FrontProxy) -> Iterator[int]:
    """The port of a server of fruits, whose APIService is available."""
    with extension.running(proxy, "fruits") as port:
        api.create(SERVICES, api_service("fruits", port, proxy.bundle))
        wait_for_reason(api, NAME, "Passed")
        until(lambda: api.client.get(BASE).status_code == 200, "the proxy")
        yield port


def fruit(name: str) -> dict[str, Any]:
    return {
        "apiVersion": "fruits.example.com/v1alpha1",
        "kind": "Fruit",
        "metadata": {"name": name},
    }


# --- this server's own APIServices


def test_every_built_in_version_has_a_local_api_service(api: Live) -> None:
    def names() -> dict[str, Any]:
        return {item["metadata"]["name"]: item for item in api.get(SERVICES)["items"]}

    until(lambda: "v2.autoscaling" in names(), "the APIServices")
    listed = names()
    assert {"v1.", "v1.apps", "v2.autoscaling", "v1.rbac.authorization.k8s.io"} <= set(listed)
    assert not {name for name in listed if "metrics" in name or "apiregistration" in name}
    core = listed["v1."]
    assert core["metadata"]["labels"] == {"kube-aggregator.kubernetes.io/automanaged": "onstart"}
    assert core["spec"] == {"version": "v1", "groupPriorityMinimum": 18000, "versionPriority": 1}
    [available] = core["status"]["conditions"]
    assert (available["status"], available["reason"]) == ("True", "Local")


def test_a_custom_kind_has_an_api_service_for_each_version(api: Live) -> None:
    definition = {
        "metadata": {"name": "jars.jam.example.com"},
        "spec": {
            "group": "jam.example.com",
            "scope": "Cluster",
            "names": {"plural": "jars", "kind": "Jar"},
            "versions": [
                {"name": "v1", "served": True, "storage": True,
                 "schema": {"openAPIV3Schema": {"type": "object"}}}
            ],
        },
    }  # fmt: skip
    definitions = "/apis/apiextensions.k8s.io/v1/customresourcedefinitions"
    api.create(definitions, definition)
    path = f"{SERVICES}/v1.jam.example.com"
    until(lambda: api.client.get(path).status_code == 200, "the APIService")
    assert api.get(path)["spec"]["groupPriorityMinimum"] == 1000
    changed = api.patch(path, {"spec": {"versionPriority": 7}})
    assert changed.status_code == 200
    until(lambda: api.get(path)["spec"]["versionPriority"] == 100, "the correction")
    api.request("DELETE", f"{definitions}/jars.jam.example.com")
    until(lambda: api.client.get(path).status_code == 404, "the APIService to go")


# --- requests


def test_requests_are_passed_on_with_who_sends_them(api: Live, shop: int) -> None:
    seen = api.get(f"{BASE}/whoami", color="red")
    headers = [tuple(pair) for pair in seen["headers"]]
    assert seen["peer"] == "front-proxy-client"
    assert seen["path"] == f"{BASE}/whoami?color=red"
    assert ("x-remote-user", "kubernetes-admin") in headers
    assert {value for name, value in headers if name == "x-remote-group"} == {
        "system:masters", "system:authenticated",
    }  # fmt: skip
    assert not {name for name, _ in headers} & {"authorization", "impersonate-user"}


def test_nobody_can_send_the_headers_of_the_front_proxy(api: Live, shop: int) -> None:
    forged = {"X-Remote-User": "root", "X-Remote-Extra-Scopes": "all", "X-Remote-Uid": "0"}
    seen = api.client.get(f"{BASE}/whoami", headers=forged).json()
    told = {name: value for name, value in seen["headers"] if name.startswith("x-remote-")}
    assert told["x-remote-user"] == "kubernetes-admin"
    assert "x-remote-extra-scopes" not in told
    assert told.get("x-remote-uid") != "0"


def test_an_impersonated_user_is_who_sends_the_request(api: Live, shop: int) -> None:
    acting = {"Impersonate-User": "jane", "Impersonate-Group": "dev", "Impersonate-Uid": "7",
              "Impersonate-Extra-Team%2FA": "blue"}  # fmt: skip
    headers = [("Authorization", f"Bearer {TOKEN}"), *acting.items()]
    seen = api.client.get(f"{BASE}/whoami", headers=headers)
    assert seen.status_code == 403  # jane may not read this path
    grant = {
        "metadata": {"name": "fruits-for-all"},
        "rules": [{"nonResourceURLs": ["/apis/*"], "verbs": ["get"]},
                  {"apiGroups": [GROUP], "resources": ["*"], "verbs": ["get", "list"]}],
    }  # fmt: skip
    api.create("/apis/rbac.authorization.k8s.io/v1/clusterroles", grant)
    reference = {
        "apiGroup": "rbac.authorization.k8s.io",
        "kind": "ClusterRole",
        "name": "fruits-for-all",
    }
    api.create(
        "/apis/rbac.authorization.k8s.io/v1/clusterrolebindings",
        {"metadata": {"name": "fruits-for-all"}, "roleRef": reference,
         "subjects": [{"kind": "Group", "name": "dev"}]},
    )  # fmt: skip
    until(lambda: api.client.get(f"{BASE}/whoami", headers=headers).status_code == 200, "the role")
    told = dict(api.client.get(f"{BASE}/whoami", headers=headers).json()["headers"])
    assert told["x-remote-user"] == "jane"
    assert told["x-remote-uid"] == "7"
    assert told["x-remote-extra-team%2fa"] == "blue"
    assert "impersonate-user" not in told


def test_authorization_comes_first(api: Live, shop: int) -> None:
    with api.as_user("bobs-token") as bob, api.as_user("wrong") as nobody:
        refused = bob.post(FRUITS, json=fruit("stolen"))
        assert refused.status_code == 403
        assert (
            'fruits.fruits.example.com is forbidden: User "bob" cannot create'
            in refused.json()["message"]
        )
        assert nobody.get(FRUITS).status_code == 401


def test_all_verbs_reach_the_server(api: Live, shop: int) -> None:
    made = api.create(FRUITS, fruit("apple"))
    assert made["metadata"]["annotations"] == {"by": "kubernetes-admin"}
    path = f"{FRUITS}/apple"
    assert api.request("PUT", path, {"taste": "sweet"}).json()["taste"] == "sweet"
    assert api.patch(path, {"taste": "sour"}).json()["taste"] == "sour"
    assert api.client.head(path).status_code == 200
    assert [item["metadata"]["name"] for item in api.get(FRUITS)["items"]] == ["apple"]
    assert api.request("DELETE", path).status_code == 200
    missing = api.client.get(path)
    assert (missing.status_code, missing.json()["reason"]) == (404, "NotFound")


def test_a_watch_is_a_stream(api: Live, shop: int) -> None:
    with api.client.stream("GET", FRUITS, params={"watch": "1"}) as response:
        lines = response.iter_lines()
        api.create(FRUITS, fruit("pear"))
        for line in lines:
            event = json.loads(line)
            if event["object"]["metadata"]["name"] == "pear":
                assert event["type"] == "ADDED"
                break


@pytest.mark.parametrize("is_chunked", [False, True])
def test_large_bodies_go_both_ways(api: Live, shop: int, is_chunked: bool) -> None:
    body = bytes(range(256)) * 20_000  # 5 MB
    parts = (body[start : start + 100_000] for start in range(0, len(body), 100_000))
    response = api.client.post(f"{BASE}/echo", content=parts if is_chunked else body)
    assert response.status_code == 200, response.text
    assert response.headers["x-sum"] == hashlib.sha256(body).hexdigest()
    assert response.content == body


def test_a_connection_is_upgraded(api: Live, shop: int) -> None:
    url = httpx.URL(api.url)
    context = ssl.create_default_context(cafile=str(api.kubeconfig.with_name("apiserver.crt")))
    with (
        socket.create_connection((url.host, url.port or 0), timeout=10) as plain,
        context.wrap_socket(plain, server_hostname="localhost") as stream,
    ):
        stream.sendall(
            f"GET {BASE}/connect HTTP/1.1\r\nHost: localhost\r\nAuthorization: Bearer {TOKEN}\r\n"
            "Connection: Upgrade\r\nUpgrade: echo\r\n\r\n".encode()
        )
        reader = stream.makefile("rb")
        assert reader.readline() == b"HTTP/1.1 101 Switching Protocols\r\n"
        while reader.readline() != b"\r\n":
            pass
        stream.sendall(b"hello\n")
        assert reader.readline() == b"HELLO\n"


def test_an_upgrade_that_the_server_declines_has_its_answer(api: Live, shop: int) -> None:
    headers = {"Connection": "Upgrade", "Upgrade": "chat"}
    declined = api.client.get(f"{BASE}/connect", headers=headers)
    assert (declined.status_code, declined.json()["message"]) == (400, "Upgrade request required")
    wrong = api.client.get(BASE, headers=headers)
    assert wrong.status_code == 503
    assert wrong.text == "invalid upgrade response: status code 200\n"


# --- documents


def find_group(api: Live, name: str = "fruits.example.com") -> dict[str, Any]:
    items = api.client.get("/apis", headers={"accept": V2}).json()["items"]
    found = [item for item in items if item["metadata"]["name"] == name]
    return dict(found[0]) if found else {}


def test_discovery_names_the_other_server_s_resources(api: Live, shop: int) -> None:
    groups = [group["name"] for group in api.get("/apis")["groups"]]
    assert groups[0] == "apiregistration.k8s.io"
    assert groups.index("apps") < groups.index("fruits.example.com")
    assert api.get("/apis/fruits.example.com")["preferredVersion"]["version"] == "v1alpha1"
    assert api.get(BASE)["resources"][0]["name"] == "fruits"
    until(lambda: find_group(api)["versions"][0]["freshness"] == "Current", "discovery")
    [version] = find_group(api)["versions"]
    assert version["resources"][0]["shortNames"] == ["fr"]


def test_a_client_that_has_a_document_gets_none(api: Live, shop: int) -> None:
    for path, accept in (("/apis", V2), ("/openapi/v2", ""), ("/openapi/v3", "")):
        first = api.client.get(path, headers={"accept": accept})
        again = api.client.get(
            path, headers={"accept": accept, "if-none-match": first.headers["etag"]}
        )
        assert (again.status_code, again.content) == (304, b"")


def test_openapi_has_the_other_server_s_kinds(api: Live, shop: int) -> None:
    until(lambda: f"apis{BASE[5:]}" in api.get("/openapi/v3")["paths"], "OpenAPI v3")
    url = api.get("/openapi/v3")["paths"][f"apis{BASE[5:]}"]["serverRelativeURL"]
    assert url == f"/openapi/v3{BASE}?hash=ABC"
    assert "com.example.Fruit" in api.get(f"/openapi/v3{BASE}")["components"]["schemas"]
    until(lambda: "com.example.Fruit" in api.get("/openapi/v2")["definitions"], "OpenAPI v2")
    document = api.get("/openapi/v2")
    meta = "io.k8s.apimachinery.pkg.apis.meta.v1.ObjectMeta"
    ref = document["definitions"]["com.example.Fruit"]["properties"]["metadata"]["$ref"]
    assert ref == f"#/definitions/{meta}_v2"
    assert document["definitions"][f"{meta}_v2"]["description"] == "Another ObjectMeta."
    assert "com.example.Unused" not in document["definitions"]
    assert document["paths"]["/version/"]["get"]["operationId"] == "getCodeVersion"
    protobuf = "application/com.github.proto-openapi.spec.v2@v1.0+protobuf"
    assert (
        b"com.example.Fruit" in api.client.get("/openapi/v2", headers={"accept": protobuf}).content
    )


def test_other_api_servers_learn_whom_to_trust(api: Live, proxy: FrontProxy) -> None:
    path = "/api/v1/namespaces/kube-system/configmaps/extension-apiserver-authentication"
    until(lambda: api.client.get(path).status_code == 200, "the ConfigMap")
    data = api.get(path)["data"]
    assert data["requestheader-client-ca-file"].strip() == proxy.proxies.path.read_text().strip()
    lists = {name: json.loads(words) for name, words in data.items() if "ca-file" not in name}
    assert lists == {
        "requestheader-username-headers": ["X-Remote-User"],
        "requestheader-uid-headers": ["X-Remote-Uid"],
        "requestheader-group-headers": ["X-Remote-Group"],
        "requestheader-extra-headers-prefix": ["X-Remote-Extra-"],
        "requestheader-allowed-names": ["front-proxy-client"],
    }  # fmt: skip


def test_metrics_name_what_is_unavailable(api: Live, shop: int) -> None:
    text = api.client.get("/metrics").text
    assert f'aggregator_unavailable_apiservice{{name="{NAME}"}} 0.0' in text


# --- kubectl


def test_kubectl_shows_api_services(kubectl: Kubectl, shop: int) -> None:
    lines = [line.split() for line in kubectl("get", "apiservices").splitlines()]
    assert lines[0] == ["NAME", "SERVICE", "AVAILABLE", "AGE"]
    shown = {line[0]: line[1:3] for line in lines}
    assert shown["v1.apps"] == ["Local", "True"]
    assert shown[NAME] == ["default/fruits", "True"]


def test_kubectl_works_with_the_other_server_s_kind(kubectl: Kubectl, api: Live, shop: int) -> None:
    until(lambda: find_group(api)["versions"][0]["freshness"] == "Current", "discovery")
    until(lambda: f"apis{BASE[5:]}" in api.get("/openapi/v3")["paths"], "OpenAPI v3")
    until(lambda: "com.example.Fruit" in api.get("/openapi/v2")["definitions"], "OpenAPI v2")
    listed = kubectl("api-resources", "--api-group=fruits.example.com").splitlines()[1].split()
    assert listed == ["fruits", "fr", "fruits.example.com/v1alpha1", "true", "Fruit"]
    assert "created" in kubectl("create", "-f", "-", stdin=fruit("plum") | {"taste": "sweet"})
    assert "plum" in kubectl("get", "fr")
    assert "Taste of the fruit." in kubectl("explain", "fruits.taste")
    assert kubectl("get", "fruit/plum", "-o", "jsonpath={.taste}") == "sweet"
    odd = fruit("odd") | {"colour": "blue"}
    assert "colour" in kubectl.run_failing("create", "-f", "-", stdin=odd)
    assert "deleted" in kubectl("delete", "fruit", "plum", "--wait=false")
