"""Every failure is a Status, and no traceback reaches a client."""

from __future__ import annotations

import base64
from typing import Any

import pytest

from kcm.apimachinery.yaml_documents import load_yaml_documents
from kcm.apiserver.http.bodies import protobuf
from kcm.apiserver.http.bodies import protobuf_values as values
from kcm.apiserver.http.bodies.protobuf_messages import table
from kcm.testing.waiting import until
from tests.integration.apiserver.manifests import pod, replica_set
from tests.integration.apiserver.serving import Live

PODS = "/api/v1/namespaces/default/pods"
LATER = 4 * 10**15  # a version that no store has reached
SETS = "/apis/apps/v1/namespaces/default/replicasets"


def failure(response: Any, code: int, reason: str) -> dict[str, Any]:
    body: dict[str, Any] = response.json()
    assert (response.status_code, body["kind"], body["status"]) == (code, "Status", "Failure")
    assert (body["code"], body["reason"]) == (code, reason), body
    return body


def test_a_missing_object_is_named(api: Live) -> None:
    body = failure(api.client.get(f"{SETS}/none"), 404, "NotFound")
    assert body["message"] == 'replicasets.apps "none" not found'
    assert body["details"] == {"name": "none", "group": "apps", "kind": "replicasets"}


@pytest.mark.parametrize(
    "path",
    ["/api/v2/pods", "/api/v1/nonsense", "/apis/none/v1/x", f"{PODS}/a/b/c", "/api/v1/pods/x",
     f"{PODS}/a/nothing", "/apis/apps/v1/namespaces/default/pods", "/nowhere"],
)  # fmt: skip
def test_an_unknown_path_is_not_found(api: Live, path: str) -> None:
    assert failure(api.client.get(path), 404, "NotFound")["details"] == {}


@pytest.mark.parametrize(
    ("method", "path"),
    [("POST", f"{PODS}/x"), ("PUT", PODS), ("PATCH", PODS), ("DELETE", "/api/v1/pods"),
     ("POST", "/api/v1/pods"), ("DELETE", f"{PODS}/x/status"), ("POST", "/version"),
     ("GET", f"{PODS}/x/binding"), ("TRACE", PODS)],
)  # fmt: skip
def test_a_method_that_is_not_served_is_405(api: Live, method: str, path: str) -> None:
    failure(api.client.request(method, path), 405, "MethodNotAllowed")


def test_an_invalid_object_lists_its_causes(api: Live) -> None:
    body = failure(api.request("POST", SETS, replica_set("bad", -1)), 422, "Invalid")
    assert body["details"]["kind"] == "ReplicaSet"
    assert body["details"]["causes"] == [
        {
            "reason": "FieldValueInvalid",
            "message": "Invalid value: -1: must be greater than or equal to 0",
            "field": "spec.replicas",
        }
    ]


@pytest.mark.parametrize(
    "content",
    [b"", b"{", b"[]", b"null", b'"x"', b'{"metadata": 3}', b'{"kind": "Node"}', b"\xff\xfe",
     b'{"metadata": {"name": "x", "namespace": "elsewhere"}}', b"[" * 100_000],
)  # fmt: skip
def test_rubbish_is_a_bad_request_or_invalid(api: Live, content: bytes) -> None:
    response = api.client.post(PODS, content=content, headers={"content-type": "application/json"})
    assert response.status_code in {400, 422}, response.text
    assert response.json()["kind"] == "Status"
    assert "Traceback" not in response.text


@pytest.mark.parametrize(
    "query",
    ["limit=x", "continue=%21%21", "labelSelector=%21%21", "fieldSelector=nonsense",
     "fieldSelector=spec.foo%3D1", "resourceVersion=x", "resourceVersionMatch=Exact",
     "watch=maybe", "resourceVersion=1&resourceVersionMatch=Sometimes",
     "watch=1&sendInitialEvents=true", "watch=1&timeoutSeconds=x",
     f"resourceVersion={LATER}&resourceVersionMatch=Exact"],
)  # fmt: skip
def test_a_wrong_parameter_is_told(api: Live, query: str) -> None:
    response = api.client.get(f"{PODS}?{query}")
    assert response.status_code in {400, 422, 504}, response.text
    assert response.json()["kind"] == "Status"


def test_media_types_that_are_not_served(api: Live) -> None:
    text = {"content-type": "text/plain"}
    failure(api.client.post(PODS, content=b"x", headers=text), 415, "UnsupportedMediaType")
    apply = {"content-type": "application/apply-patch+cbor"}
    patched = api.client.patch(f"{PODS}/x", content=b"{}", headers=apply)
    failure(patched, 415, "UnsupportedMediaType")
    only = {"accept": "application/cbor"}
    failure(api.client.get(PODS, headers=only), 406, "NotAcceptable")
    both = {"accept": "application/vnd.kubernetes.protobuf,application/json"}
    assert api.client.get(PODS, headers=both).headers["content-type"] == "application/json"


def test_a_body_over_three_mebibytes_is_refused(api: Live) -> None:
    body = pod("huge", annotations={"a": "x" * (3 * 1024 * 1024)})
    failure(api.request("POST", PODS, body), 413, "RequestEntityTooLarge")


def test_field_validation_warns_ignores_or_refuses(api: Live) -> None:
    body = pod("f-warn")
    body["spec"]["contaners"] = []
    response = api.request("POST", PODS, body, params={"fieldValidation": "Warn"})
    assert response.headers["warning"] == '299 - "unknown field \\"spec.contaners\\""'
    refused = api.request("POST", PODS, body, params={"fieldValidation": "Strict"})
    assert 'unknown field "spec.contaners"' in failure(refused, 400, "BadRequest")["message"]
    body["metadata"]["name"] = "f-ignore"
    quiet = api.request("POST", PODS, body, params={"fieldValidation": "Ignore"})
    assert "warning" not in quiet.headers
    failure(api.request("POST", PODS, body, params={"fieldValidation": "x"}), 400, "BadRequest")


def test_a_failure_nobody_foresaw_is_told_without_its_trace(
    api: Live, monkeypatch: pytest.MonkeyPatch
) -> None:
    def broken(*_: object) -> None:
        raise RuntimeError("secret detail")

    monkeypatch.setattr(api.app.store, "get_raw", broken)
    response = api.client.get(f"{PODS}/x")
    failure(response, 500, "InternalError")
    assert "secret" not in response.text


def test_strangers_are_kept_out(api: Live) -> None:
    wrong = {"authorization": "Bearer wrong"}
    failure(api.client.get(PODS, headers=wrong), 401, "Unauthorized")
    nobody = {"authorization": ""}
    failure(api.client.get("/livez", headers=nobody), 401, "Unauthorized")
    lured = {"host": "evil.example"}
    failure(api.client.get(PODS, headers=lured), 403, "Forbidden")


def token(fields: str) -> str:
    return base64.urlsafe_b64encode(fields.encode()).decode()


@pytest.mark.parametrize(
    "params",
    [
        {"continue": token('{"v":Infinity,"k":""}')},
        {"continue": token('{"v":1e400,"k":""}')},
        {"continue": token('{"v":true,"k":""}')},
        {"continue": token('{"v":1,"k":null}')},
        {"continue": token("[" * 20_000)},
        {"continue": token("[]")},
        {"resourceVersion": str(2**63)},
        {"resourceVersion": "9" * 19},
        {"limit": str(2**63)},
        {"timeoutSeconds": str(2**63), "watch": "1"},
    ],
)
def test_numbers_and_tokens_beyond_all_are_bad_requests(api: Live, params: dict[str, str]) -> None:
    failure(api.client.get(PODS, params=params), 400, "BadRequest")


def test_a_precondition_that_is_no_text_is_a_conflict(api: Live) -> None:
    path = "/api/v1/namespaces/default/configmaps"
    api.create(path, {"metadata": {"name": "half"}})
    for field in ("uid", "resourceVersion"):
        body = b'{"preconditions":{"%s":"\\ud800"}}' % field.encode()
        headers = {"content-type": "application/json"}
        answer = api.client.request("DELETE", f"{path}/half", content=body, headers=headers)
        failure(answer, 409, "Conflict")


@pytest.mark.parametrize(
    ("address", "port"),
    [("a:b", 10250), ("1.2.3.4", -1), ("1.2.3.4", 99999), ("a b", 1), ("a/b@c", 1),
     ("1.2.3.4\r\nx: y", 1), ("[::1", 1), ("::1%eth0\n", 1)],
)  # fmt: skip
def test_a_node_address_that_cannot_be_asked_is_a_bad_request(
    api: Live, address: str, port: int
) -> None:
    api.client.delete("/api/v1/nodes/odd")
    api.create("/api/v1/nodes", {"metadata": {"name": "odd"}})
    status = {
        "addresses": [{"type": "InternalIP", "address": address}],
        "daemonEndpoints": {"kubeletEndpoint": {"Port": port}},
    }
    changed = api.patch("/api/v1/nodes/odd/status", {"status": status})
    assert changed.status_code == 200, changed.text
    failure(api.client.get("/api/v1/nodes/odd/proxy/healthz"), 400, "BadRequest")


def test_of_a_repeated_selector_the_first_counts_for_leave_and_for_the_list(api: Live) -> None:
    rules = [{"apiGroups": [""], "resources": ["configmaps"], "verbs": ["list"],
              "resourceNames": ["mine"]}]  # fmt: skip
    rbac = "/apis/rbac.authorization.k8s.io/v1/namespaces/default"
    group = "rbac.authorization.k8s.io"
    api.create(f"{rbac}/roles", {"metadata": {"name": "first"}, "rules": rules})
    api.create(
        f"{rbac}/rolebindings",
        {
            "metadata": {"name": "first"},
            "roleRef": {"apiGroup": group, "kind": "Role", "name": "first"},
            "subjects": [{"apiGroup": group, "kind": "User", "name": "jane"}],
        },
    )
    path = "/api/v1/namespaces/default/configmaps"
    for name in ("mine", "others"):
        api.create(path, {"metadata": {"name": name}})
    with api.as_user("janes-token") as jane:
        mine, others = "fieldSelector=metadata.name%3Dmine", "fieldSelector=metadata.name%3Dothers"
        until(lambda: jane.get(f"{path}?{mine}").status_code == 200, "the role")
        items = jane.get(f"{path}?{mine}&{others}").json()["items"]
        assert [item["metadata"]["name"] for item in items] == ["mine"]
        failure(jane.get(f"{path}?{others}&{mine}"), 403, "Forbidden")


def test_preconditions_and_versions_are_told_in_upstreams_words(api: Live) -> None:
    maps = "/api/v1/namespaces/default/configmaps"
    made = api.create(maps, {"metadata": {"name": "e-words"}})["metadata"]
    version = made["resourceVersion"]
    for conditions, words in (
        (
            {"uid": "x"},
            f"the UID in the precondition (x) does not match the UID in record ({made['uid']}). "
            "The object might have been deleted and then recreated",
        ),
        (
            {"resourceVersion": "1"},
            "the ResourceVersion in the precondition (1) does not match the ResourceVersion in "
            f"record ({version}). The object might have been modified",
        ),
    ):
        body = {"preconditions": conditions}
        message = failure(api.request("DELETE", f"{maps}/e-words", body), 409, "Conflict")[
            "message"
        ]
        assert message == f'Operation cannot be fulfilled on ConfigMap "e-words": {words}'
    late = api.client.get(maps, params={"resourceVersion": str(LATER)})
    assert late.json()["message"].startswith(f"Timeout: Too large resource version: {LATER}, ")


@pytest.mark.parametrize(
    ("path", "params", "message"),
    [
        (PODS, {"fieldSelector": "spec.x=1"}, "field label not supported: spec.x"),
        (
            "/api/v1/configmaps",
            {"fieldSelector": "data=1"},
            '"data" is not a known field selector: only "metadata.name", "metadata.namespace"',
        ),
    ],
)
def test_selectors_are_refused_in_upstreams_words(
    api: Live, path: str, params: dict[str, str], message: str
) -> None:
    assert message in failure(api.client.get(path, params=params), 400, "BadRequest")["message"]


def test_a_table_with_objects_of_an_unknown_form_is_refused(api: Live) -> None:
    table = {"accept": "application/json;as=Table;v=v1;g=meta.k8s.io"}
    answer = api.client.get(PODS, params={"includeObject": "Bogus"}, headers=table)
    assert failure(answer, 400, "BadRequest")["message"] == (
        'Unable to convert to Table as requested: includeObject: Invalid value: "Bogus": '
        "must be 'Metadata', 'Object', 'None', or empty"
    )


def test_yaml_that_is_sent_as_json_is_not_recognized(api: Live) -> None:
    headers = {"content-type": "application/json"}
    body = "apiVersion: v1\nkind: Namespace\nmetadata:\n  name: x\n"
    answer = api.client.post("/api/v1/namespaces", content=body, headers=headers)
    assert failure(answer, 400, "BadRequest")["message"] == (
        "the object provided is unrecognized (must be of type Namespace): couldn't get "
        "version/kind; json parse error: invalid character 'a' looking for beginning of value "
        "(61706956657273696f6e3a2076310a6b696e643a204e616d657370616365 ...)"
    )


def test_a_strategic_patch_of_a_wrong_type_is_told_as_go_prints_it(api: Live) -> None:
    maps = "/api/v1/namespaces/default/configmaps"
    api.create(maps, {"metadata": {"name": "e-strategic"}})
    wrong = {"metadata": {"labels": "invalid"}}
    answer = api.patch(f"{maps}/e-strategic", wrong, "strategic")
    assert failure(answer, 422, "Invalid")["message"].endswith(
        'patch: Invalid value: "map[metadata:map[labels:invalid]]": cannot restore map from string'
    )


REVIEWS = "/apis/authorization.k8s.io/v1/selfsubjectaccessreviews"
REVIEW = {"spec": {"resourceAttributes": {"verb": "get", "resource": "pods"}}}
TABLE = "application/json;as=Table;v=v1;g=meta.k8s.io"


def test_a_question_has_no_table(api: Live) -> None:
    answer = api.client.post(REVIEWS, json=REVIEW, headers={"accept": TABLE})
    failure(answer, 406, "NotAcceptable")
    either = {"accept": f"{TABLE},application/json"}
    plain = api.client.post(REVIEWS, json=REVIEW, headers=either)
    assert plain.json()["kind"] == "SelfSubjectAccessReview"


def test_yaml_is_answered_to_who_prefers_it(api: Live) -> None:
    maps = "/api/v1/namespaces/default/configmaps"
    made = api.create(maps, {"metadata": {"name": "e-yaml"}, "data": {"on": "1", "b": "yes"}})
    asks = {"accept": "application/yaml, application/json;q=0.9"}
    answer = api.client.get(f"{maps}/e-yaml", headers=asks)
    assert answer.headers["content-type"] == "application/yaml"
    assert load_yaml_documents(answer.text) == [made]
    assert answer.text.startswith("apiVersion: v1\ndata:\n  b: 'yes'\n  'on': '1'\n")
    missing = api.client.get(f"{maps}/none", headers=asks)
    assert (missing.status_code, missing.headers["content-type"]) == (404, "application/yaml")
    assert "reason: NotFound" in missing.text
    both = {"accept": "application/json, application/yaml"}
    assert api.client.get(f"{maps}/e-yaml", headers=both).json() == made
    only = {"accept": "application/yaml"}
    assert api.client.get(maps, params={"watch": "1"}, headers=only).status_code == 406


def read_list(body: bytes, message: str) -> list[dict[str, Any]]:
    """Returns the items of a list in protobuf, read with a message that has them as field 2."""
    version, kind, raw = values.envelope(body.removeprefix(b"k8s\x00"))
    assert (version, kind) == ("v1", f"{message.rpartition('.')[2]}List")
    items = []
    while raw:
        tag, end = raw[0], 1
        while raw[end] > 127:
            end += 1
        length = sum((byte & 127) << 7 * place for place, byte in enumerate(raw[1 : end + 1]))
        end += 1
        if tag == 0x12:
            items.append(values.parse_message(message, raw[end : end + length]))
        raw = raw[end + length :]
    return items


def test_protobuf_is_answered_to_who_takes_nothing_else(api: Live) -> None:
    maps = "/api/v1/namespaces/default/configmaps"
    only = {"accept": protobuf.CONTENT_TYPE}
    body = {"metadata": {"name": "e-protobuf"}, "data": {"a": "b"}}
    made = api.client.post(maps, json=body, headers=only)
    assert (made.status_code, made.headers["content-type"]) == (201, protobuf.CONTENT_TYPE)
    stored = api.get(f"{maps}/e-protobuf")
    assert protobuf.decode(made.content) == stored
    listed = api.client.get(maps, headers=only).content
    assert read_list(listed, "v1.ConfigMap") == api.get(maps)["items"]
    missing = api.client.get(f"{maps}/none", headers=only)
    assert missing.status_code == 404
    assert protobuf.decode(missing.content)["reason"] == "NotFound"
    both = {"accept": f"{protobuf.CONTENT_TYPE},application/json"}
    assert api.client.get(f"{maps}/e-protobuf", headers=both).json() == stored
    as_table = {"accept": f"{protobuf.CONTENT_TYPE};as=Table;v=v1;g=meta.k8s.io"}
    assert api.client.get(maps, headers=as_table).status_code == 406


def read_frames(body: bytes) -> list[tuple[str, dict[str, Any]]]:
    """Returns the types and the objects of a watch's events in protobuf."""
    events = []
    while body:
        end = 4 + int.from_bytes(body[:4], "big")
        event: Any = table().classes["meta/v1.WatchEvent"].FromString(body[4:end])
        events.append((event.f1, protobuf.decode(event.f2.f1)))
        body = body[end:]
    return events


def test_a_watch_is_in_protobuf_for_who_takes_nothing_else(api: Live) -> None:
    maps = "/api/v1/namespaces/default/configmaps"
    only = {"accept": protobuf.CONTENT_TYPE}
    version = api.get(maps)["metadata"]["resourceVersion"]
    made = api.create(maps, {"metadata": {"name": "e-frames"}, "data": {"a": "b" * 100_000}})
    api.patch(f"{maps}/e-frames", {"data": {"a": "c"}})
    changed = api.get(f"{maps}/e-frames")
    asked = {"watch": "1", "resourceVersion": version, "timeoutSeconds": "1"}
    answer = api.client.get(maps, params=asked, headers=only)
    assert answer.headers["content-type"] == f"{protobuf.CONTENT_TYPE};stream=watch"
    assert read_frames(answer.content) == [("ADDED", made), ("MODIFIED", changed)]
    expired = api.client.get(maps, params=asked | {"resourceVersion": "1"}, headers=only)
    [(kind, told)] = read_frames(expired.content)
    assert (kind, told["kind"], told["code"]) == ("ERROR", "Status", 410)
