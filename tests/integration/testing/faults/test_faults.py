"""Faults of requests, as clients in a test meet them."""

from __future__ import annotations

import ssl
import time
from collections.abc import Callable
from concurrent.futures import ThreadPoolExecutor
from typing import Any

import httpx
import pytest
from kubernetes import client as kubernetes

from kcm.testing import ControlPlane, ErrorCode, Verb
from tests.integration.official_client import open_official_client

MAPS = "/api/v1/namespaces/default/configmaps"
DEPLOYMENTS = "/apis/apps/v1/namespaces/default/deployments"
MODIFIED = (
    "the object has been modified; please apply your changes to the latest version and try again"
)
Connect = Callable[..., httpx.Client]


def config_map(name: str, **data: str) -> dict[str, Any]:
    return {
        "apiVersion": "v1",
        "kind": "ConfigMap",
        "metadata": {"name": name, "namespace": "default"},
        "data": data,
    }


def send(client: httpx.Client, verb: str, name: str) -> httpx.Response:
    """Sends a request with a verb of the API about a ConfigMap."""
    one = f"{MAPS}/{name}"
    merge = {"content-type": "application/merge-patch+json"}
    requests: dict[str, Callable[[], httpx.Response]] = {
        "get": lambda: client.get(one),
        "list": lambda: client.get(MAPS),
        "watch": lambda: client.get(MAPS, params={"watch": "true", "timeoutSeconds": "1"}),
        "create": lambda: client.post(MAPS, json=config_map(name)),
        "update": lambda: client.put(one, json=config_map(name)),
        "patch": lambda: client.patch(one, json={"data": {"a": "b"}}, headers=merge),
        "delete": lambda: client.delete(one),
        "deletecollection": lambda: client.delete(MAPS, params={"labelSelector": "none=none"}),
    }
    return requests[verb]()


# verb, code, reason, message, details
Answer = tuple[Verb, ErrorCode, str, str, dict[str, Any] | None]
ANSWERS: list[Answer] = [
    ("update", 401, "Unauthorized", "Unauthorized", None),
    (
        "update",
        403,
        "Forbidden",
        'configmaps "NAME" is forbidden: User "kubernetes-admin" cannot update resource '
        '"configmaps" in API group "" in the namespace "default"',
        {"name": "NAME", "kind": "configmaps"},
    ),
    (
        "get",
        404,
        "NotFound",
        'configmaps "NAME" not found',
        {"name": "NAME", "kind": "configmaps"},
    ),
    ("list", 404, "NotFound", "the server could not find the requested resource", {}),
    (
        "update",
        409,
        "Conflict",
        f'Operation cannot be fulfilled on configmaps "NAME": {MODIFIED}',
        {"name": "NAME", "kind": "configmaps"},
    ),
    (
        "create",
        409,
        "AlreadyExists",
        'configmaps "NAME" already exists',
        {"name": "NAME", "kind": "configmaps"},
    ),
    (
        "list",
        410,
        "Expired",
        "The resourceVersion for the provided list is too old.",
        None,
    ),
    (
        "patch",
        429,
        "TooManyRequests",
        "Too many requests, please try again later.",
        {"retryAfterSeconds": 1},
    ),
    (
        "delete",
        500,
        "InternalError",
        "Internal error occurred: injected by kcm.testing",
        {"causes": [{"message": "injected by kcm.testing"}]},
    ),
    (
        "deletecollection",
        503,
        "ServiceUnavailable",
        "the server is currently unable to handle the request",
        {"retryAfterSeconds": 1},
    ),
    (
        "watch",
        504,
        "Timeout",
        "Timeout: request did not complete within the allotted timeout",
        None,
    ),
]


@pytest.mark.parametrize("answer", ANSWERS, ids=lambda one: f"{one[0]}-{one[1]}")
def test_an_error_has_the_status_of_kubernetes(
    cp: ControlPlane,
    operator: httpx.Client,
    name: str,
    answer: Answer,
) -> None:
    verb, code, reason, message, details = answer
    if verb != "create":
        cp.apply(config_map(name))
    fault = cp.faults.api(verb=verb, resource="configmaps", error=code, times=1)
    refused = send(operator, verb, name)
    body = refused.json()
    assert (refused.status_code, body["code"], body["kind"]) == (code, code, "Status")
    assert (body["status"], body["reason"]) == ("Failure", reason)
    assert body["message"] == message.replace("NAME", name)
    wanted = {key: name if text == "NAME" else text for key, text in (details or {}).items()}
    assert body.get("details") == (None if details is None else wanted)
    retry = {429: "1", 503: "1"}.get(code)
    assert refused.headers.get("retry-after") == retry
    assert (fault.hits, cp.faults.active) == (1, [])
    assert send(operator, verb, name).status_code in (200, 201)


def test_the_kinds_group_is_in_the_words(cp: ControlPlane, operator: httpx.Client) -> None:
    with cp.faults.api(verb="update", resource="deployments", error=409):
        refused = operator.put(f"{DEPLOYMENTS}/web", json={})
    assert refused.json()["message"].startswith(
        'Operation cannot be fulfilled on deployments.apps "web": '
    )
    assert refused.json()["details"] == {"name": "web", "group": "apps", "kind": "deployments"}


def test_some_requests_pass_and_some_are_hit(
    cp: ControlPlane, operator: httpx.Client, name: str
) -> None:
    cp.apply(config_map(name))
    fault = cp.faults.api(verb="update", error=409, after=2, times=3)
    assert repr(fault) == "<Fault update any resource: 409, 0 of 3 hits>"
    codes = [send(operator, "update", name).status_code for _ in range(7)]
    assert codes == [200, 200, 409, 409, 409, 200, 200]
    assert (fault.hits, cp.faults.active) == (3, [])
    assert len(cp.faults.log) >= 3
    last = str(cp.faults.log[-1])
    assert f"update configmaps default/{name} by kubernetes-admin (my-operator/1.0)" in last


def test_nothing_of_a_failed_request_is_carried_out(
    cp: ControlPlane, operator: httpx.Client, name: str
) -> None:
    with cp.faults.api(verb="create", error=500) as fault:
        assert send(operator, "create", name).status_code == 500
    assert fault.hits == 1
    assert send(operator, "get", name).status_code == 404


@pytest.mark.parametrize(
    ("chosen", "hits"),
    [
        ({"verb": "get"}, True),
        ({"verb": "list"}, False),
        ({"resource": "configmaps"}, True),
        ({"resource": "secrets"}, False),
        ({"resource": "configmaps/*"}, False),
        ({"namespace": "default"}, True),
        ({"namespace": "kube-system"}, False),
        ({"name": "absent"}, True),
        ({"name": "other"}, False),
        ({"for_": "my-operator"}, True),
        ({"for_": "kubernetes-admin"}, True),
        ({"for_": "operator"}, False),
        ({}, True),
    ],
)
def test_requests_are_chosen(
    cp: ControlPlane, operator: httpx.Client, chosen: dict[str, str], hits: bool
) -> None:
    with cp.faults.api(error=500, must_hit=False, **chosen) as fault:  # type: ignore[arg-type] # see the table
        code = send(operator, "get", "absent").status_code
    assert (code, fault.hits) == ((500, 1) if hits else (404, 0))


def test_subresources_are_resources_of_their_own(cp: ControlPlane, operator: httpx.Client) -> None:
    with (
        cp.faults.api(resource="pods/status", error=500),
        cp.faults.api(resource="pods", error=503),
    ):
        pod = "/api/v1/namespaces/default/pods/p"
        assert operator.get(f"{pod}/status").status_code == 500
        assert operator.get(pod).status_code == 503


def test_a_service_account_is_chosen_by_its_name(cp: ControlPlane, connect: Connect) -> None:
    act_as = {"impersonate-user": "system:serviceaccount:default:robot"}
    acting = connect()
    acting.headers.update(act_as)
    for chosen in ("robot", "default/robot", "system:serviceaccount:default:robot"):
        with cp.faults.api(for_=chosen, error=503, must_hit=False):
            # a fault hits only what is allowed
            assert acting.get(MAPS).status_code == 403
    cp.apply(
        {
            "apiVersion": "rbac.authorization.k8s.io/v1",
            "kind": "ClusterRoleBinding",
            "metadata": {"name": "robot"},
            "roleRef": {
                "apiGroup": "rbac.authorization.k8s.io",
                "kind": "ClusterRole",
                "name": "cluster-admin",
            },
            "subjects": [{"kind": "ServiceAccount", "name": "robot", "namespace": "default"}],
        }
    )
    cp.eventually(lambda: acting.get(MAPS).status_code == 200)
    for chosen in ("robot", "default/robot", "system:serviceaccount:default:robot"):
        with cp.faults.api(for_=chosen, error=503):
            assert acting.get(MAPS).status_code == 503
    never = r"never hit: any verb .* for other: 503; not hit were list"
    with pytest.raises(AssertionError, match=never), cp.faults.api(for_="other", error=503):
        assert acting.get(MAPS).status_code == 200


def test_the_testers_own_requests_are_left_alone(cp: ControlPlane, name: str) -> None:
    with cp.faults.api(error=500, must_hit=False) as fault:
        cp.apply(config_map(name))
        assert cp.get(f"configmap/{name}")
    assert fault.hits == 0


def test_a_timeout_holds_the_request_as_long_as_it_asks(
    cp: ControlPlane, operator: httpx.Client
) -> None:
    cp.faults.api(verb="list", error="timeout")
    began = time.monotonic()
    late = operator.get(MAPS, params={"timeout": "300ms"})
    assert time.monotonic() - began >= 0.3
    assert (late.status_code, late.json()["reason"]) == (504, "Timeout")


def test_a_client_that_gives_up_gets_nothing(cp: ControlPlane, operator: httpx.Client) -> None:
    fault = cp.faults.api(verb="list", error="timeout", times=1)
    with pytest.raises(httpx.ReadTimeout):
        operator.get(MAPS, timeout=0.2)
    assert fault.hits == 1
    assert operator.get(MAPS).status_code == 200


@pytest.mark.parametrize("verb", ["get", "watch", "create"])
def test_a_cut_connection_ends_without_an_answer(
    cp: ControlPlane, operator: httpx.Client, name: str, verb: Verb
) -> None:
    cp.faults.api(verb=verb, error="cut", times=1)
    with pytest.raises(httpx.TransportError):
        send(operator, verb, name)
    assert send(operator, "list", name).status_code == 200


def test_latency_delays_an_answer_and_an_error(cp: ControlPlane, operator: httpx.Client) -> None:
    cp.faults.api(verb="list", latency=0.2, times=2)
    cp.faults.api(verb="list", error=503, times=1, after=1)
    codes, times = [], [time.monotonic()]
    for _ in range(2):
        codes.append(operator.get(MAPS).status_code)
        times.append(time.monotonic())
    assert codes == [200, 503]
    assert min(times[1] - times[0], times[2] - times[1]) >= 0.2


@pytest.mark.parametrize(
    ("arguments", "advice"),
    [
        ({"error": 418}, "error=418 is unknown: use one of 401, 403, 404"),
        ({"error": "slow"}, "or 'cut'"),
        (
            {"error": 409, "verb": "get"},
            "never answers get with 409: use a verb of create",
        ),
        ({"error": 500, "verb": "put"}, "verb='put' is none of the API's: use get, list, watch"),
        ({"error": 500, "resource": "deploy"}, "is no plural: use 'deployments'"),
        ({"error": 500, "resource": "Cron Tab"}, "use one like deployments, deployments.apps"),
        ({"error": 500, "times": 0}, "use 1 or more, or None for ever"),
        ({"error": 500, "after": -1}, "use 0 to strike at once"),
        ({"error": 500, "for_": ""}, "leave it out to match everything"),
        ({"latency": -1}, "use seconds from 0 on"),
        ({}, "give an error, a latency, or both"),
    ],
)
def test_a_mistake_says_what_to_do(
    cp: ControlPlane, arguments: dict[str, Any], advice: str
) -> None:
    with pytest.raises(ValueError, match=advice):
        cp.faults.api(**arguments)
    assert cp.faults.active == []


def test_an_operators_client_survives_conflicts(cp: ControlPlane, name: str) -> None:
    """An operator with the library `kubernetes` reads again after each conflict."""
    cp.apply(config_map(name, count="0"))
    with open_official_client(cp.kubeconfig) as connection:
        connection.user_agent = "counting-operator"
        api = kubernetes.CoreV1Api(connection)
        cp.faults.api(
            verb="update", resource="configmaps", error=409, times=3, for_="counting-operator"
        )
        attempts = 0
        while True:
            attempts += 1
            seen = api.read_namespaced_config_map(name, "default")
            assert seen.data is not None
            seen.data["count"] = str(int(seen.data["count"]) + 1)
            try:
                api.replace_namespaced_config_map(name, "default", seen)
                break
            except kubernetes.ApiException as error:
                assert error.status == 409  # noqa: PT017 - others are not caught
        assert attempts == 4
        assert cp.get(f"configmap/{name}")["data"] == {"count": "1"}


def test_faults_end_with_the_test(cp: ControlPlane, operator: httpx.Client) -> None:
    first = cp.faults.api(error=500)
    second = cp.faults.webhook("some.example.com")
    assert cp.faults.active == list(cp.faults) == [first, second]
    assert repr(cp.faults) == (
        "<Faults [<Fault any verb any resource: 500, 0 hits>, "
        "<Fault webhook some.example.com: refused, 0 hits>]>"
    )
    first.remove()
    assert operator.get(MAPS).status_code == 200
    cp.faults.clear()
    first.remove()
    assert cp.faults.active == []


def test_a_held_request_does_not_hold_up_the_end() -> None:
    with ControlPlane(nodes=0) as own:
        authority = own.kubeconfig.parent / "apiserver.crt"
        client = httpx.Client(
            base_url=own.url,
            headers={"authorization": f"Bearer {own.token}"},
            verify=ssl.create_default_context(cafile=str(authority)),
            timeout=50.0,
        )
        fault = own.faults.api(verb="list", error="timeout")
        with ThreadPoolExecutor(1) as threads:
            late = threads.submit(client.get, MAPS)
            own.eventually(lambda: fault.hits)
            began = time.monotonic()
            own.stop()
            assert late.result().status_code == 504
            assert time.monotonic() - began < 30.0
        client.close()
