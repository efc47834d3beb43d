"""Faults of watches, of reads from the past and of webhooks, as clients in a test meet them."""

from __future__ import annotations

import json
import subprocess
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any

import httpx
import pytest
from kubernetes import client as kubernetes
from kubernetes import watch

from kcm.testing import ApiError, ControlPlane
from kcm.testing.waiting import until
from tests.integration.apiserver.kubectl import VERSIONS, find
from tests.integration.official_client import open_official_client
from tests.webhooks.process import WebhookServer, webhook_server

MAPS = "/api/v1/namespaces/default/configmaps"
SECRETS = "/api/v1/namespaces/default/secrets"
KUBECTL = find(VERSIONS[-1])
Connect = Callable[..., httpx.Client]


def config_map(name: str, **data: str) -> dict[str, Any]:
    return {"apiVersion": "v1", "kind": "ConfigMap", "metadata": {"name": name}, "data": data}


def version_of(obj: dict[str, Any]) -> str:
    version: str = obj["metadata"]["resourceVersion"]
    return version


@contextmanager
def watching(client: httpx.Client, path: str, version: str) -> Iterator[Iterator[dict[str, Any]]]:
    """Yields the events of a watch."""
    query = {"watch": "true", "resourceVersion": version, "timeoutSeconds": "20"}
    with client.stream("GET", path, params=query) as response:
        yield (json.loads(line) for line in response.iter_lines())


def newest(client: httpx.Client, path: str) -> str:
    return version_of(client.get(path).json())


def opened(cp: ControlPlane, client: httpx.Client, path: str) -> tuple[httpx.Response, str]:
    """Returns the response of a watch that the server has begun to serve, and where it began."""
    version = newest(client, path)
    query = {"watch": "true", "resourceVersion": version, "timeoutSeconds": "20"}
    return client.send(client.build_request("GET", path, params=query), stream=True), version


# --- watches


def test_open_watches_are_cut(cp: ControlPlane, connect: Connect) -> None:
    mine, other = connect(), connect("other")
    cut, _ = opened(cp, mine, MAPS)
    kept, _ = opened(cp, other, MAPS)
    fault = cp.faults.watches(resource="configmaps", for_="my-operator")
    with pytest.raises(httpx.TransportError):
        list(cut.iter_lines())
    assert (fault.hits, cp.faults.active) == (1, [])
    cp.apply(config_map("after-cut"))
    event = json.loads(next(kept.iter_lines()))
    assert event["object"]["metadata"]["name"] == "after-cut"
    cut.close()
    kept.close()


def test_only_watches_of_the_resource_are_cut(cp: ControlPlane, operator: httpx.Client) -> None:
    kept, _ = opened(cp, operator, SECRETS)
    assert cp.faults.watches(resource="configmaps").hits == 0
    assert cp.faults.watches(resource="secrets", namespace="other").hits == 0
    assert cp.faults.watches(resource="secrets").hits == 1
    kept.close()


def test_expired_watches_end_with_an_event_of_410(cp: ControlPlane, operator: httpx.Client) -> None:
    response, version = opened(cp, operator, MAPS)
    fault = cp.faults.watches(resource="configmaps", how="expired")
    (event,) = [json.loads(line) for line in response.iter_lines()]
    assert event["type"] == "ERROR"
    assert (event["object"]["code"], event["object"]["reason"]) == (410, "Expired")

    with watching(operator, MAPS, version) as again:  # without a list in between
        (event,) = list(again)
    assert event["object"]["message"].startswith(f"too old resource version: {version} (")
    assert fault.hits == 2
    with watching(operator, MAPS, version) as third:  # once for each client
        cp.apply(config_map("after-expiry"))
        assert next(third)["object"]["metadata"]["name"] == "after-expiry"


def test_a_client_that_lists_again_is_not_expired_again(
    cp: ControlPlane, operator: httpx.Client
) -> None:
    response, _ = opened(cp, operator, MAPS)
    fault = cp.faults.watches(resource="configmaps", how="expired")
    list(response.iter_lines())
    with watching(operator, MAPS, newest(operator, MAPS)) as fresh:
        cp.apply(config_map("after-list"))
        assert next(fresh)["type"] == "ADDED"
    assert fault.hits == 1


def test_each_client_expires_and_newer_versions_do_not(cp: ControlPlane, connect: Connect) -> None:
    first, second, third = connect("first"), connect("second"), connect("third")
    version = newest(first, MAPS)
    cp.faults.watches(resource="configmaps", how="expired")
    made = cp.apply(config_map("after-fault"))
    for client in (first, second):
        with watching(client, MAPS, version) as events:
            assert next(events)["type"] == "ERROR"
    with watching(third, MAPS, version_of(made[0])) as events:
        cp.apply(config_map("still-later"))
        assert next(events)["type"] == "ADDED"


def test_a_watch_of_the_library_kubernetes_tells_the_expiry(cp: ControlPlane) -> None:
    with open_official_client(cp.kubeconfig) as connection:
        connection.user_agent = "watching-operator"
        api = kubernetes.CoreV1Api(connection)
        listed = api.list_namespaced_config_map("default")
        assert listed.metadata is not None
        version = listed.metadata.resource_version
        fault = cp.faults.watches(resource="configmaps", how="expired", for_="watching-operator")
        events = watch.Watch().stream(
            api.list_namespaced_config_map, "default", resource_version=version, timeout_seconds=1
        )
        with pytest.raises(kubernetes.ApiException) as expired:
            list(events)
        assert expired.value.status == 410
        assert fault.hits == 1


@pytest.mark.parametrize(
    ("arguments", "advice"),
    [
        ({"how": "slowly"}, "use 'cut' or 'expired'"),
        ({"resource": "cm"}, "use 'configmaps'"),
    ],
)
def test_a_mistake_about_watches_says_what_to_do(
    cp: ControlPlane, arguments: dict[str, Any], advice: str
) -> None:
    with pytest.raises(ValueError, match=advice):
        cp.faults.watches(**arguments)


# --- reads from the past


def test_reads_at_version_0_come_from_the_past(cp: ControlPlane, operator: httpx.Client) -> None:
    old = version_of(cp.apply(config_map("past", state="old"))[0])
    cp.apply(config_map("past", state="new"))
    cp.apply(config_map("present"))
    now = newest(operator, MAPS)
    cp.faults.stale_lists(resource="configmaps", since=old)
    past = operator.get(MAPS, params={"resourceVersion": "0"}).json()
    by_name = {one["metadata"]["name"]: one for one in past["items"]}
    assert version_of(past) == old
    assert by_name["past"]["data"] == {"state": "old"}
    assert "present" not in by_name
    one = operator.get(f"{MAPS}/past", params={"resourceVersion": "0"}).json()
    assert one["data"] == {"state": "old"}
    gone = operator.get(f"{MAPS}/present", params={"resourceVersion": "0"})
    assert (gone.status_code, gone.json()["reason"]) == (404, "NotFound")
    # A consistent read is never old, and a watch brings what was missed.
    assert version_of(operator.get(MAPS).json()) == now
    assert operator.get(f"{MAPS}/past").json()["data"] == {"state": "new"}
    with watching(operator, MAPS, old) as events:
        assert [next(events)["type"] for _ in range(2)] == ["MODIFIED", "ADDED"]


def test_reads_may_be_some_changes_behind(cp: ControlPlane, operator: httpx.Client) -> None:
    for count in range(4):
        cp.apply(config_map("changing", number=str(count)))
    assert operator.get(MAPS).status_code == 200  # the cache has them
    fault = cp.faults.stale_lists(resource="configmaps", by=2, times=2)

    def number() -> str:
        one = operator.get(f"{MAPS}/changing", params={"resourceVersion": "0"}).json()
        found: str = one["data"]["number"]
        return found

    assert number() == "1"
    cp.apply(config_map("changing", number="4"))
    assert operator.get(MAPS).status_code == 200
    assert number() == "2"
    assert number() == "4"
    assert (fault.hits, cp.faults.active) == (2, [])


def test_a_past_that_nobody_remembers_is_the_oldest(
    cp: ControlPlane, operator: httpx.Client
) -> None:
    cp.apply(config_map("remembered"))
    cp.faults.stale_lists(resource="configmaps", by=1_000_000)
    past = operator.get(MAPS, params={"resourceVersion": "0"})
    assert past.status_code == 200
    assert "remembered" not in {one["metadata"]["name"] for one in past.json()["items"]}


@pytest.mark.parametrize(
    ("arguments", "advice"),
    [
        ({}, "either by=CHANGES or since=RESOURCEVERSION"),
        ({"by": 1, "since": 1}, "either by=CHANGES or since=RESOURCEVERSION"),
        ({"by": 0}, "use 1 or more"),
        ({"since": "yesterday"}, "use metadata.resourceVersion"),
    ],
)
def test_a_mistake_about_the_past_says_what_to_do(
    cp: ControlPlane, arguments: dict[str, Any], advice: str
) -> None:
    with pytest.raises(ValueError, match=advice):
        cp.faults.stale_lists(**arguments)


# --- webhooks


@pytest.fixture(scope="module")
def hooks(tmp_path_factory: pytest.TempPathFactory) -> Iterator[WebhookServer]:
    with webhook_server(tmp_path_factory.mktemp("webhooks")) as running:
        yield running


@pytest.fixture
def webhook(cp: ControlPlane, hooks: WebhookServer) -> Iterator[str]:
    """The name of a webhook that is asked about ConfigMaps with the label asked=yes."""
    kind = {"apiGroups": [""], "apiVersions": ["v1"], "resources": ["configmaps"]}
    cp.apply(
        {
            "apiVersion": "admissionregistration.k8s.io/v1",
            "kind": "ValidatingWebhookConfiguration",
            "metadata": {"name": "checks"},
            "webhooks": [
                {
                    "name": "check.example.com",
                    "clientConfig": hooks.at("allow"),
                    "rules": [{**kind, "operations": ["*"]}],
                    "objectSelector": {"matchLabels": {"asked": "yes"}},
                    "sideEffects": "None",
                    "admissionReviewVersions": ["v1"],
                    "timeoutSeconds": 1,
                }
            ],
        }
    )
    until(lambda: is_asked(cp, hooks), "the webhook is asked")
    yield "check.example.com"
    cp.delete("validatingwebhookconfiguration/checks")


def is_asked(cp: ControlPlane, hooks: WebhookServer) -> bool:
    hooks.take_reviews()
    cp.apply(checked("probe"))
    cp.delete("configmap/probe")
    return bool(hooks.take_reviews())


def checked(name: str) -> dict[str, Any]:
    obj = config_map(name)
    obj["metadata"]["labels"] = {"asked": "yes"}
    return obj


Failure = tuple[Any, str]  # how the webhook fails, and what the client is told
FAILURES: list[Failure] = [
    ("refused", "dial tcp 127.0.0.1:PORT: connect: connection refused"),
    ("timeout", "context deadline exceeded"),
    (500, 'an error on the server ("unknown") has prevented the request from succeeding'),
    (404, "the server could not find the requested resource"),
]


@pytest.mark.parametrize("failure", FAILURES, ids=lambda one: str(one[0]))
@pytest.mark.parametrize("name", ["check.example.com", "checks"])
def test_a_webhook_fails_as_the_network_makes_it(
    cp: ControlPlane, webhook: str, hooks: WebhookServer, name: str, failure: Failure
) -> None:
    error, words = failure
    fault = cp.faults.webhook(name, error=error, times=1)
    hooks.take_reviews()
    with pytest.raises(ApiError) as refused:
        cp.apply(checked(f"checked-{error}"))
    assert refused.value.code == 500
    start = f'Internal error occurred: failed calling webhook "{webhook}": failed to call webhook: '
    assert refused.value.message.startswith(start)
    assert words.replace("PORT", str(hooks.port)) in refused.value.message
    assert hooks.take_reviews() == []
    assert fault.hits == 1
    assert cp.faults.log[-1].request == "call of check.example.com of checks"
    cp.apply(checked(f"checked-{error}"))


def test_a_webhook_times_out_at_once_while_the_clock_stands_still(
    cp: ControlPlane, webhook: str
) -> None:
    longer = [{"op": "replace", "path": "/webhooks/0/timeoutSeconds", "value": 30}]
    cp.patch("validatingwebhookconfiguration/checks", longer)
    cp.clock.freeze()
    cp.settle()
    try:
        with cp.faults.webhook(webhook, error="timeout"):
            refused = cp.objects.client.post(MAPS, json=checked("in-no-time"), timeout=15)
        assert refused.json()["message"].endswith('?timeout=30s": context deadline exceeded')
    finally:
        cp.clock.run()


def test_other_webhooks_do_not_fail(cp: ControlPlane, webhook: str) -> None:
    with cp.faults.webhook("other.example.com", must_hit=False) as fault:
        cp.apply(checked("checked-anyway"))
    assert fault.hits == 0


def test_a_conversion_webhook_is_known_by_its_definition(
    cp: ControlPlane, operator: httpx.Client, hooks: WebhookServer
) -> None:
    schema = {"openAPIV3Schema": {"type": "object"}}
    version = {"served": True, "schema": schema}
    webhook = {"clientConfig": hooks.at("allow"), "conversionReviewVersions": ["v1"]}
    cp.apply(
        {
            "apiVersion": "apiextensions.k8s.io/v1",
            "kind": "CustomResourceDefinition",
            "metadata": {"name": "turners.example.com"},
            "spec": {
                "group": "example.com",
                "scope": "Cluster",
                "names": {"plural": "turners", "singular": "turner", "kind": "Turner"},
                "versions": [
                    {**version, "name": "v1", "storage": True},
                    {**version, "name": "v2", "storage": False},
                ],
                "conversion": {"strategy": "Webhook", "webhook": webhook},
            },
        }
    )
    cp.wait_for("crd/turners.example.com", condition="Established")
    turner = {"apiVersion": "example.com/v1", "kind": "Turner", "metadata": {"name": "one"}}
    made = operator.post("/apis/example.com/v1/turners", json=turner)
    assert made.status_code == 201, made.text
    hooks.take_reviews()
    with cp.faults.webhook("turners.example.com") as fault:
        refused = operator.get("/apis/example.com/v2/turners/one")
    assert refused.status_code == 500
    assert "connect: connection refused" in refused.json()["message"]
    assert fault.hits == 1
    assert hooks.take_reviews() == []


@pytest.mark.parametrize(
    ("name", "error", "advice"),
    [
        ("", "refused", "name the webhook"),
        ("a", "slow", "use 'refused', 'timeout' or a status such as 500"),
        ("a", 200, "use 'refused', 'timeout' or a status such as 500"),
    ],
)
def test_a_mistake_about_webhooks_says_what_to_do(
    cp: ControlPlane, name: str, error: Any, advice: str
) -> None:
    with pytest.raises(ValueError, match=advice):
        cp.faults.webhook(name, error=error)


# --- kubectl


def kubectl(cp: ControlPlane, *words: str) -> subprocess.CompletedProcess[str]:
    command = [str(KUBECTL), f"--kubeconfig={cp.kubeconfig}", *words]
    return subprocess.run(command, capture_output=True, text=True, timeout=60, check=False)


@pytest.mark.skipif(not KUBECTL, reason="needs kubectl, see KCM_KUBECTL_DIR")
def test_kubectl_waits_and_tries_again_after_429(cp: ControlPlane) -> None:
    fault = cp.faults.api(verb="list", resource="nodes", error=429, times=2, for_="kubectl")
    done = kubectl(cp, "get", "nodes", "-o", "name")
    assert (done.stdout, done.returncode) == ("node/node-1\n", 0), done.stderr
    assert fault.hits == 2


@pytest.mark.skipif(not KUBECTL, reason="needs kubectl, see KCM_KUBECTL_DIR")
def test_kubectl_shows_a_conflict_in_kubernetes_words(cp: ControlPlane, tmp_path: Path) -> None:
    manifest = tmp_path / "map.json"
    manifest.write_text(json.dumps(config_map("by-kubectl")))
    assert kubectl(cp, "create", "-f", str(manifest)).returncode == 0
    cp.faults.api(verb="update", resource="configmaps", error=409, for_="kubectl", times=1)
    refused = kubectl(cp, "replace", "-f", str(manifest))
    assert refused.returncode == 1
    assert "Error from server (Conflict)" in refused.stderr
    assert "the object has been modified; please apply your changes" in refused.stderr
