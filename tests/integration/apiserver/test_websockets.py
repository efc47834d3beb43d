"""Logs and watches over WebSocket, by a client of its own."""

from __future__ import annotations

import json
import ssl
from base64 import b64decode
from collections.abc import Iterator
from contextlib import contextmanager

import pytest
import websocket
from prometheus_client.parser import text_string_to_metric_families

from kcm.api.simulated import SIMULATOR_LABEL
from kcm.testing.waiting import until
from tests.integration.apiserver.manifests import pod
from tests.integration.apiserver.serving import Live

PODS = "/api/v1/namespaces/default/pods"


@contextmanager
def connect(api: Live, path: str, *protocols: str) -> Iterator[websocket.WebSocket]:
    client = websocket.WebSocket(sslopt={"cert_reqs": ssl.CERT_NONE})
    client.settimeout(30)
    url = f"{api.url.replace('http', 'ws', 1)}{path}"
    header = {"authorization": api.client.headers["authorization"]}
    try:
        client.connect(  # type: ignore[no-untyped-call] # the library has no types
            url, header=header, subprotocols=protocols or None
        )
        yield client
    finally:
        client.shutdown()  # type: ignore[no-untyped-call] # nor here


def messages(client: websocket.WebSocket) -> Iterator[tuple[int, bytes]]:
    """Yields the opcode and the data of each message, until the server closes the connection."""
    while True:
        opcode, data = client.recv_data()
        if opcode == websocket.ABNF.OPCODE_CLOSE:
            return
        yield opcode, data


@pytest.fixture(scope="module")
def talker(api: Live) -> str:
    """Returns the path of the log of a pod on a simulated node."""
    node = {"metadata": {"name": "ws-node", "labels": {SIMULATOR_LABEL: "true"}}}
    api.create("/api/v1/nodes", node)
    body = pod("talker")
    body["spec"]["nodeName"] = "ws-node"
    api.create(PODS, body)
    started = {"running": {"startedAt": "2024-01-01T00:00:00Z"}}
    name = body["spec"]["containers"][0]["name"]
    status = {
        "phase": "Running",
        "startTime": "2024-01-01T00:00:00Z",
        "containerStatuses": [
            {"name": name, "image": "x", "imageID": "", "ready": True, "restartCount": 0,
             "state": started}
        ],
    }  # fmt: skip
    answer = api.request(
        "PATCH",
        f"{PODS}/talker/status",
        {"status": status},
        headers={"content-type": "application/merge-patch+json"},
    )
    assert answer.status_code == 200, answer.text
    return f"{PODS}/talker/log"


@pytest.mark.parametrize(
    ("protocols", "opcode"),
    [
        ((), websocket.ABNF.OPCODE_BINARY),
        (("binary.k8s.io",), websocket.ABNF.OPCODE_BINARY),
        (("other", "base64.binary.k8s.io"), websocket.ABNF.OPCODE_TEXT),
    ],
)
def test_a_log_is_sent_in_messages(
    api: Live, talker: str, protocols: tuple[str, ...], opcode: int
) -> None:
    with connect(api, talker, *protocols) as client:
        assert client.getsubprotocol() == (protocols[-1] if protocols else None)
        sent = list(messages(client))
    assert {code for code, _ in sent} == {opcode}
    pieces = [b64decode(data) if opcode == 1 else data for _, data in sent]
    assert b"".join(pieces) == api.client.get(talker).content != b""


def test_a_watch_sends_a_message_for_each_event(api: Live) -> None:
    version = api.get(PODS)["metadata"]["resourceVersion"]
    path = f"{PODS}?watch=true&resourceVersion={version}&timeoutSeconds=20"
    with connect(api, path) as client:
        api.create(PODS, pod("seen"))
        api.create(PODS, pod("seen-too"))
        received = messages(client)
        sent = [next(received) for _ in range(2)]
    assert {code for code, _ in sent} == {websocket.ABNF.OPCODE_TEXT}
    events = [json.loads(data) for _, data in sent]
    assert [(event["type"], event["object"]["metadata"]["name"]) for event in events] == [
        ("ADDED", "seen"),
        ("ADDED", "seen-too"),
    ]


def test_a_watch_that_times_out_closes_the_connection(api: Live) -> None:
    with connect(api, f"{PODS}?watch=true&resourceVersion=0&timeoutSeconds=1") as client:
        assert all(code == websocket.ABNF.OPCODE_TEXT for code, _ in messages(client))


def test_a_watch_ends_when_its_client_leaves(api: Live) -> None:
    def count() -> float:
        return sum(
            sample.value
            for family in text_string_to_metric_families(api.client.get("/metrics").text)
            for sample in family.samples
            if sample.name == "apiserver_longrunning_requests"
        )

    before = count()
    with connect(api, f"{PODS}?watch=true&timeoutSeconds=600"):
        until(lambda: count() == before + 1, "the start of the watch")
    until(lambda: count() == before, "the end of the watch")


@pytest.mark.parametrize("path", [f"{PODS}/nobody/log", f"{PODS}?watch=true&resourceVersion=x"])
def test_an_error_before_the_handshake_is_an_answer(api: Live, path: str) -> None:
    with pytest.raises(websocket.WebSocketBadStatusException) as refused, connect(api, path):
        pass
    assert refused.value.status_code in {400, 404}
    assert json.loads(refused.value.resp_body or b"")["kind"] == "Status"


def test_a_subprotocol_that_is_not_there_is_refused(api: Live, talker: str) -> None:
    with (
        pytest.raises(websocket.WebSocketBadStatusException) as refused,
        connect(api, talker, "v5.channel.k8s.io"),
    ):
        pass
    assert refused.value.status_code == 400
