"""What webhooks change of requests whose object is not stored, and of Scales."""

from __future__ import annotations

import json
from typing import Any
from urllib.parse import quote

import httpx
import pytest

from tests.integration.apiserver.webhooks import Place, message_of, place, server

__all__ = ["place", "server"]


def patch(*operations: dict[str, Any]) -> str:
    """Returns the behaviour of a webhook that patches every object."""
    return f"patch/{quote(json.dumps(operations), safe='')}"


def put(path: str, value: Any) -> dict[str, Any]:
    return {"op": "add", "path": path, "value": value}


def make_pod(place: Place, **spec: Any) -> dict[str, Any]:
    containers = [{"name": "c", "image": "i"}]
    body = {"metadata": {"name": "a"}, "spec": {"containers": containers, **spec}}
    made: dict[str, Any] = place.api.create(place.path("pods"), body)
    return made


def post(place: Place, subresource: str, **fields: Any) -> httpx.Response:
    body = {"metadata": {"name": "a"}, **fields}
    return place.api.request("POST", f"{place.path('pods')}/a/{subresource}", body)


def bind(place: Place, **metadata: str) -> httpx.Response:
    return post(place, "binding", metadata={"name": "a", **metadata}, target={"name": "n"})


def test_a_pod_is_bound_as_webhooks_have_changed_its_binding(place: Place) -> None:
    rule = {"resources": ["pods/binding"]}
    zone = put("/metadata/annotations", {"zone": "b"})
    place.mutate(patch(put("/target/name", "other"), zone), rule=rule)
    place.validate("allow", rule=rule)
    make_pod(place)
    assert bind(place).status_code == 201
    pod = place.api.get(f"{place.path('pods')}/a")
    assert (pod["spec"]["nodeName"], pod["metadata"]["annotations"]["zone"]) == ("other", "b")
    first, second = place.reviews()
    assert first["object"]["target"] == {"name": "n"}
    assert second["object"]["target"] == {"name": "other"}
    assert second["object"]["metadata"]["annotations"] == {"zone": "b"}


def test_a_webhook_sees_again_what_a_later_one_has_changed(place: Place) -> None:
    rule = {"resources": ["pods/binding"]}
    place.mutate("allow", rule=rule, reinvocationPolicy="IfNeeded")
    place.mutate(patch(put("/target/name", "other")), rule=rule)
    make_pod(place)
    assert bind(place).status_code == 201
    names = [review["object"]["target"]["name"] for review in place.reviews()]
    assert names == ["n", "n", "other"]


@pytest.mark.parametrize("field", ["uid", "resourceVersion"])
def test_a_binding_may_be_for_one_state_of_a_pod_alone(place: Place, field: str) -> None:
    made = make_pod(place)
    wrong = bind(place, **{field: "77"})
    assert wrong.status_code == 409
    assert "Precondition failed: " in message_of(wrong)
    assert bind(place, **{field: made["metadata"][field]}).status_code == 201


def test_a_pod_is_evicted_as_webhooks_have_changed_its_eviction(place: Place) -> None:
    options = put("/deleteOptions", {"gracePeriodSeconds": 77})
    place.mutate(patch(options), rule={"resources": ["pods/eviction"]})
    make_pod(place, nodeName="n")
    assert post(place, "eviction").status_code == 201
    pod = place.api.get(f"{place.path('pods')}/a")
    assert pod["metadata"]["deletionGracePeriodSeconds"] == 77


def test_a_token_is_issued_as_webhooks_have_changed_its_request(place: Place) -> None:
    audiences = put("/spec/audiences", ["vault"])
    place.mutate(patch(audiences), rule={"resources": ["serviceaccounts/token"]})
    accounts = place.path("serviceaccounts")
    place.api.create(accounts, {"metadata": {"name": "robot"}})
    answer = place.api.request("POST", f"{accounts}/robot/token", {"spec": {}})
    assert answer.status_code == 201, answer.text
    assert answer.json()["spec"]["audiences"] == ["vault"]


def test_a_scale_is_changed_and_nothing_of_its_object_besides(place: Place) -> None:
    labels = put("/metadata/labels", {"by": "webhook"})
    rule = {"apiGroups": ["apps"], "resources": ["deployments/scale"]}
    place.mutate(patch(put("/spec/replicas", 4), labels), rule=rule)
    place.validate("allow", rule=rule)
    path = f"/apis/apps/v1/namespaces/{place.name}/deployments"
    template = {"metadata": {"labels": {"app": "a"}},
                "spec": {"containers": [{"name": "c", "image": "i"}]}}  # fmt: skip
    spec = {"replicas": 1, "selector": {"matchLabels": {"app": "a"}}, "template": template}
    place.api.create(path, {"metadata": {"name": "a"}, "spec": spec})
    scaled = place.api.patch(f"{path}/a/scale", {"spec": {"replicas": 9}})
    assert (scaled.status_code, scaled.json()["spec"]) == (200, {"replicas": 4}), scaled.text
    stored = place.api.get(f"{path}/a")
    assert stored["spec"]["replicas"] == 4
    assert "by" not in stored["metadata"].get("labels", {})
    first, second = place.reviews()
    assert (first["object"]["kind"], first["object"]["spec"]) == ("Scale", {"replicas": 9})
    assert second["object"]["spec"] == {"replicas": 4}


@pytest.mark.parametrize(
    ("operation", "code", "words"),
    [
        (put("/target", [1]), 500, "Binding: target: Input should be"),
        (put("/metadata/name", "b"), 400, "name in URL does not match name in Binding object"),
        ({"op": "remove", "path": "/nothing/here"}, 500, "the server rejected our request"),
        (put("/target/kind", "Pod"), 422, 'target.kind: Unsupported value: "Pod"'),
    ],
)
def test_a_change_that_makes_no_request_is_an_error(
    place: Place, operation: dict[str, Any], code: int, words: str
) -> None:
    place.mutate(patch(operation), rule={"resources": ["pods/binding"]})
    make_pod(place)
    refused = bind(place)
    assert (refused.status_code, words in message_of(refused)) == (code, True), refused.text
    assert "nodeName" not in place.api.get(f"{place.path('pods')}/a")["spec"]


def test_a_connection_is_not_changed(place: Place) -> None:
    rule = {"resources": ["pods/proxy"], "operations": ["CONNECT"]}
    place.mutate(patch(put("/path", "/other")), rule=rule)
    make_pod(place)
    refused = place.api.client.get(f"{place.path('pods')}/a/proxy/x")
    assert refused.status_code == 500
    assert "attempted to modify the object, which is not supported" in message_of(refused)
