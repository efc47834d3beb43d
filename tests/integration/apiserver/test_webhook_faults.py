"""Webhooks that are down, slow or lie, and where they are found."""

from __future__ import annotations

from concurrent.futures import ThreadPoolExecutor
from typing import Any

import pytest

from kcm.testing.waiting import until
from tests.integration.apiserver.webhooks import Place, message_of, place, server
from tests.webhooks.process import WebhookServer, webhook_server

__all__ = ["place", "server"]


# --- what can go wrong


FAULTS = {
    "rubbish": "received invalid webhook response: couldn't get version/kind; json parse error",
    "no-response": "received invalid webhook response: webhook response was absent",
    "wrong-uid": 'received invalid webhook response: expected response.uid="',
    "wrong-kind": "expected webhook response of admission.k8s.io/v1, Kind=AdmissionReview",
    "patch-without-type": "webhook returned response.patch but not response.patchType",
    "other-patch": 'unsupported patch type "Merge"',
    "bad-base64": "response.patch is not base64",
    "big": "the response is larger than",
    "status/404": "failed to call webhook: the server could not find the requested resource",
    "status/500": 'an error on the server ("no") has prevented the request from succeeding',
    "status/302": "received invalid webhook response: ",  # it is followed with a GET
    "redirect/redirect": "stopped after 10 redirects",
    "close": ": EOF",
    "never": "context deadline exceeded",
    "drip": "context deadline exceeded",
}


def patience(behaviour: str) -> int:
    """Returns the seconds that a webhook has. A busy machine may take one until it answers."""
    return 1 if FAULTS[behaviour] == "context deadline exceeded" else 30


@pytest.mark.parametrize("behaviour", FAULTS)
def test_a_webhook_that_fails_refuses_and_says_why(place: Place, behaviour: str) -> None:
    name = place.mutate(behaviour, timeoutSeconds=patience(behaviour))
    response = place.create("a")
    text = message_of(response)
    assert (response.status_code, response.json()["reason"]) == (500, "InternalError")
    assert text.startswith(f'Internal error occurred: failed calling webhook "{name}": ')
    assert FAULTS[behaviour] in text


@pytest.mark.parametrize("behaviour", FAULTS)
def test_a_webhook_whose_failures_are_ignored_is_passed_over(place: Place, behaviour: str) -> None:
    place.mutate(behaviour, timeoutSeconds=patience(behaviour), failurePolicy="Ignore")
    place.mutate("label/after")
    made = place.create("a")
    assert made.status_code == 201, made.text
    assert made.json()["metadata"]["labels"] == {"after": "1"}


@pytest.mark.parametrize(
    ("behaviour", "code", "words"),
    [
        ("bad-patch", 500, "Internal error occurred"),
        ("bad-object", 500, "Internal error occurred"),
        ("rename/Wrong_Name", 422, "metadata.name: Invalid value"),
        ("move/kube-system", 400, "the namespace of the provided object does not match"),
    ],
)
def test_a_patch_that_cannot_be_applied_refuses(
    place: Place, behaviour: str, code: int, words: str
) -> None:
    place.mutate(behaviour, failurePolicy="Ignore")  # it was called, so that does not count
    response = place.create("a")
    assert response.status_code == code, response.text
    assert words in message_of(response)


def test_a_server_with_another_certificate_is_not_trusted(
    place: Place, tmp_path_factory: pytest.TempPathFactory
) -> None:
    with webhook_server(tmp_path_factory.mktemp("stranger")) as stranger:
        url = stranger.url("allow")
        place.mutate("", clientConfig={"url": url, "caBundle": place.server.bundle})
        text = message_of(place.create("a"))
    assert (
        "tls: failed to verify certificate: x509: certificate signed by unknown authority" in text
    )


def test_a_server_that_is_down_is_named(place: Place) -> None:
    place.mutate("", clientConfig={"url": "https://127.0.0.1:1/hook"})
    text = message_of(place.create("a"))
    asked = 'Post "https://127.0.0.1:1/hook?timeout=5s"'
    why = "dial tcp 127.0.0.1:1: connect: connection refused"
    assert text.endswith(f"failed to call webhook: {asked}: {why}")


def test_slow_webhooks_hold_up_nobody_else(
    place: Place, tmp_path_factory: pytest.TempPathFactory
) -> None:
    slow = {"metadata": {"generateName": "slow-", "labels": {"slow": "yes"}}}
    with (
        webhook_server(tmp_path_factory.mktemp("slow")) as server,
        ThreadPoolExecutor(40) as pool,
    ):
        place.mutate(
            "",
            clientConfig=server.at("never"),
            timeoutSeconds=30,
            objectSelector={"matchLabels": {"slow": "yes"}},
        )
        waiting = [pool.submit(place.api.request, "POST", place.path(), slow) for _ in range(40)]
        until_asked(server, 40)
        for number in range(20):
            assert place.create(f"quick-{number}").status_code == 201
            place.api.get(place.path("pods"))
        assert not any(future.done() for future in waiting)
        server.release()
        codes = {future.result().status_code for future in waiting}
    assert codes == {500}


def until_asked(server: WebhookServer, count: int) -> None:
    asked: list[Any] = []

    def all_asked() -> bool:
        asked.extend(server.take_reviews())
        return len(asked) >= count

    until(all_asked, "the webhooks to be asked")


# --- behind a Service


def serve_by_service(place: Place, address: str | None, port: int) -> None:
    """Makes the Service hook.system, whose endpoint is at an address."""
    api = place.api
    api.request("POST", "/api/v1/namespaces", {"metadata": {"name": "system"}})
    service = {"metadata": {"name": "hook"}, "spec": {"ports": [{"port": 443, "name": "https"}]}}
    api.request("POST", "/api/v1/namespaces/system/services", service)
    endpoints = [] if address is None else [{"addresses": [address]}]
    slices = "/apis/discovery.k8s.io/v1/namespaces/system/endpointslices"
    api.request("DELETE", f"{slices}/by-hand")
    api.create(
        slices,
        {
            "metadata": {"name": "by-hand", "labels": {"kubernetes.io/service-name": "hook"}},
            "addressType": "IPv4",
            "endpoints": endpoints,
            "ports": [{"name": "https", "port": port}],
        },
    )
    for path in (
        "/api/v1/services",
        "/api/v1/endpoints",
        "/apis/discovery.k8s.io/v1/endpointslices",
    ):
        api.get(path)


def test_a_webhook_behind_a_service_is_found_by_its_endpoints(place: Place) -> None:
    service = {"namespace": "system", "name": "hook", "path": "/label/served"}
    name = place.mutate("", clientConfig={"service": service, "caBundle": place.server.bundle})
    missing = message_of(place.create("a"))
    assert f'failed calling webhook "{name}": failed to call webhook: Post ' in missing
    assert missing.endswith(
        '"https://hook.system.svc:443/label/served?timeout=5s": service "hook" not found'
    )
    serve_by_service(place, None, place.server.port)
    assert message_of(place.create("a")).endswith('no endpoints available for service "hook"')
    serve_by_service(place, "127.0.0.1", place.server.port)
    assert place.create("a").json()["metadata"]["labels"] == {"served": "1"}
