"""Conversion webhooks that are down, slow or lie."""

from __future__ import annotations

from concurrent.futures import ThreadPoolExecutor
from typing import Any

import pytest

from kcm.apiserver.egress.conversion import calls
from kcm.testing.waiting import until
from tests.integration.apiserver.conversions import Gateways, gateways, message_of, server
from tests.webhooks.process import webhook_server

__all__ = ["gateways", "server"]

# By behaviour, what the message says after "conversion webhook for GROUP/v1beta1, Kind=Gateway ".
FAULTS = {
    "refuse/out of order": "failed: out of order",
    "no-status": "failed: response.result.status was '', not 'Success'",
    "no-response": "failed: no response provided",
    "wrong-uid": 'failed: expected response.uid="',
    "wrong-review": "failed: expected webhook response of apiextensions.k8s.io/v1, "
    "Kind=ConversionReview, got /v1, Kind=Pod",
    "rubbish": "failed: couldn't get version/kind; json parse error: ",
    "big": 'failed: Post "https://127.0.0.1:',
    "status/500": 'failed: an error on the server ("no") has prevented the request from succeeding',
    "close": 'failed: Post "https://127.0.0.1:',
    "no-list": "failed: response.convertedObjects is not a list",
    "too-few": "returned 0 objects, expected 1",
    "no-object": "returned invalid object: Object 'Kind' is missing in 'None'",
    "same-version": "returned invalid object: invalid groupVersion (expected {group}/v1, received "
    "{group}/v1beta1)",
    "wrong-kind": "returned invalid object: invalid kind (expected Gateway, received Pod)",
    "rename": "returned invalid object: must have the same name: a != other",
    "move": "returned invalid object: must have the same namespace: default != other",
    "other-uid": "returned invalid object: must have the same UID: ",
    "no-metadata": "returned invalid object: must have the same name: a != ",
    "bad-label": "returned invalid metadata: metadata.labels[a] must be a string, but is int64 in "
    "converted object",
    "wrong-label": 'returned invalid metadata: metadata.labels: Invalid value: "not valid"',
}


def test_a_webhook_that_lies_is_named_with_what_it_did(gateways: Gateways) -> None:
    gateways.create("a")
    shown = f"{gateways.group}/v1beta1, Kind=Gateway"
    for behaviour, words in FAULTS.items():
        gateways.configure(behaviour)
        for path in (gateways.path("a"), gateways.path()):
            answer = gateways.api.client.get(path)
            assert answer.status_code == 500, (behaviour, answer.text)
            begin = f"conversion webhook for {shown} {words.format(group=gateways.group)}"
            assert message_of(answer).startswith(begin), behaviour
    assert gateways.api.get(gateways.path("a", "v1beta1"))["spec"] == {"hostPort": "shop:80"}


def test_several_objects_are_told_apart_by_their_number(gateways: Gateways) -> None:
    for name in ("a", "b"):
        gateways.create(name)
    gateways.configure("rename")
    text = message_of(gateways.api.client.get(gateways.path()))
    assert "returned invalid converted object at index 0: must have the same name: a !=" in text


def test_nothing_is_written_without_the_webhook(gateways: Gateways) -> None:
    api = gateways.api
    gateways.create("a")
    gateways.configure("", clientConfig={"url": "https://127.0.0.1:1/hook"})
    why = (
        'failed: Post "https://127.0.0.1:1/hook?timeout=30s": dial tcp 127.0.0.1:1: '
        "connect: connection refused"
    )
    before = gateways.stored("a")
    for answer in (
        api.request("POST", gateways.path(), gateways.gateway("b", "v1")),
        api.patch(gateways.path("a"), {"metadata": {"labels": {"a": "b"}}}),
        api.client.delete(gateways.path("a")),
    ):
        assert answer.status_code == 500, answer.text
        assert message_of(answer).endswith(why)
    assert gateways.stored("a") == before
    assert [
        item["metadata"]["name"] for item in api.get(gateways.path("", "v1beta1"))["items"]
    ] == ["a"]
    assert api.client.delete(gateways.path("a", "v1beta1")).status_code == 200
    assert api.store.io.execute("HGETALL", api.store.io.keys.damaged()) == {}


def test_metrics_tell_successes_and_failures(gateways: Gateways) -> None:
    api = gateways.api
    gateways.create("a")
    api.get(gateways.path("a"))
    gateways.configure("too-few")
    api.client.get(gateways.path("a"))
    text = api.client.get("/metrics").text
    name = f'crd_name="gateways.{gateways.group}",from_version="v1beta1"'
    for succeeded in ("true", "false"):
        labels = f'{name},succeeded="{succeeded}",to_version="v1"'
        line = f"apiserver_crd_conversion_webhook_duration_seconds_count{{{labels}}} 1.0"
        assert line in text, succeeded
    partial = "conversion_webhook_partial_response_failure"
    counted = f'apiserver_conversion_webhook_request_total{{failure_type="{partial}"'
    assert counted in text


def test_a_slow_webhook_holds_up_nobody_else(
    gateways: Gateways,
    monkeypatch: pytest.MonkeyPatch,
    tmp_path_factory: pytest.TempPathFactory,
) -> None:
    api = gateways.api
    gateways.create("a")
    with (
        webhook_server(tmp_path_factory.mktemp("slow")) as slow,
        ThreadPoolExecutor(20) as pool,
    ):
        gateways.configure("", clientConfig=slow.at("never"))
        api.get(gateways.path(version="v1beta1"))  # the cache has the object: all gets share it
        waiting = [pool.submit(api.client.get, gateways.path("a")) for _ in range(20)]
        asked: list[Any] = []

        def is_asked() -> bool:
            asked.extend(slow.take_reviews())
            return bool(asked)

        until(is_asked, "the webhook to be asked")
        for number in range(20):
            body = {"metadata": {"name": f"quick-{gateways.group}-{number}"}}
            api.create("/api/v1/namespaces/default/configmaps", body)
            api.get(gateways.path("a", "v1beta1"))
        assert not any(future.done() for future in waiting)
        assert len(asked) == 1  # for all of them
        slow.release()
        answers = {future.result().status_code for future in waiting}
    assert answers == {500}
    with webhook_server(tmp_path_factory.mktemp("never")) as never:
        monkeypatch.setattr(calls, "TIMEOUT", 0.2)
        gateways.configure("", clientConfig=never.at("never"))
        text = message_of(api.client.get(gateways.path("a")))
    assert text.endswith("context deadline exceeded")
