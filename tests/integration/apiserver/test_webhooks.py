"""What webhooks of a real TLS server are asked, and what they may do, through the REST API.

Facts from staging/src/k8s.io/apiserver/pkg/admission/plugin/webhook/testing/testcase.go.
"""

from __future__ import annotations

import json
from urllib.parse import quote

import pytest

from tests.integration.apiserver.webhooks import Place, message_of, place, server

__all__ = ["place", "server"]


# --- what a webhook is asked


def test_a_review_says_what_is_written_and_by_whom(place: Place) -> None:
    place.validate("allow")
    assert place.create("a", x="1").status_code == 201
    (review,) = place.reviews()
    uid = review.pop("uid")
    obj = review.pop("object")
    assert len(uid) == 36
    assert (obj["metadata"]["name"], obj["data"]) == ("a", {"x": "1"})
    assert obj["metadata"]["uid"]
    assert obj["metadata"]["managedFields"]
    assert review == {
        "kind": {"group": "", "version": "v1", "kind": "ConfigMap"},
        "resource": {"group": "", "version": "v1", "resource": "configmaps"},
        "requestKind": {"group": "", "version": "v1", "kind": "ConfigMap"},
        "requestResource": {"group": "", "version": "v1", "resource": "configmaps"},
        "name": "a",
        "namespace": place.name,
        "operation": "CREATE",
        "userInfo": {
            "username": "kubernetes-admin",
            "groups": ["system:masters", "system:authenticated"],
        },
        "oldObject": None,
        "dryRun": False,
        "options": {"kind": "CreateOptions", "apiVersion": "meta.k8s.io/v1"},
    }


def test_changes_and_deletions_come_with_the_old_object(place: Place) -> None:
    place.create("a", x="1")
    place.mutate("allow")
    place.api.patch(f"{place.path()}/a", {"data": {"x": "2"}})
    place.api.request("DELETE", f"{place.path()}/a", {"gracePeriodSeconds": 0})
    change, deletion = place.reviews()
    assert (change["operation"], change["options"]["kind"]) == ("UPDATE", "PatchOptions")
    assert (change["object"]["data"], change["oldObject"]["data"]) == ({"x": "2"}, {"x": "1"})
    assert (deletion["operation"], deletion["object"]) == ("DELETE", None)
    assert deletion["oldObject"]["data"] == {"x": "2"}
    assert deletion["options"]["gracePeriodSeconds"] == 0


def test_a_generated_name_comes_after_mutating_webhooks_and_before_validating_ones(
    place: Place,
) -> None:
    place.mutate("allow")
    place.validate("allow")
    made = place.api.create(place.path(), {"metadata": {"generateName": "web-"}})
    mutating, validating = place.reviews()
    assert "name" not in mutating
    assert "name" not in mutating["object"]["metadata"]
    assert validating["name"] == made["metadata"]["name"]


def test_the_older_review_is_sent_to_who_reads_no_other(place: Place) -> None:
    place.validate("wrong-uid", admissionReviewVersions=["v1beta1"])
    assert place.create("a").status_code == 201  # in v1beta1 the uid is not looked at
    (asked,) = place.server.take_reviews()
    assert asked["review"]["apiVersion"] == "admission.k8s.io/v1beta1"
    assert asked["query"] == "timeout=5s"
    assert asked["headers"]["user-agent"] == "kube-apiserver-admission"


def test_a_dry_run_is_told(place: Place) -> None:
    place.validate("allow")
    place.api.create(place.path(), {"metadata": {"name": "a"}}, dryRun="All")
    (review,) = place.reviews()
    assert review["dryRun"] is True
    assert review["options"]["dryRun"] == ["All"]


# --- what it may do


@pytest.mark.parametrize(
    ("path", "asked"),
    [
        ("/label/a", ["/label/a"]),  # the URL of envtest has two slashes
        ("x/..//label//a/", ["/label/a"]),
        ("label%2Fa", ["/label/a"]),
        ("redirect/label/a", ["/redirect/label/a", "/label/a"]),
    ],
)
def test_a_webhook_is_called_where_gos_client_calls_it(
    place: Place, path: str, asked: list[str]
) -> None:
    place.mutate(path)
    assert place.create("a").json()["metadata"]["labels"] == {"a": "1"}
    assert [one["path"] for one in place.server.take_reviews()] == asked


def test_a_webhook_cannot_choose_what_the_system_sets(place: Place) -> None:
    fields = {"uid": "forged", "generation": 99, "selfLink": "/x"}
    operations = [
        {"op": "add", "path": f"/metadata/{name}", "value": fields[name]} for name in fields
    ]
    place.mutate(f"patch/{quote(json.dumps(operations), safe='')}")
    made = place.create("a").json()["metadata"]
    assert made["uid"] != "forged"
    assert not {"generation", "selfLink"} & set(made)
    changed = place.api.patch(f"{place.path()}/a", {"data": {"k": "v"}}).json()["metadata"]
    assert changed["uid"] == made["uid"]
    assert not {"generation", "selfLink"} & set(changed)


def test_an_object_is_stored_as_the_webhooks_have_changed_it(place: Place) -> None:
    place.mutate("label/a")
    place.mutate("label/b")
    made = place.create("one").json()
    assert made["metadata"]["labels"] == {"a": "1", "b": "1"}
    assert place.api.get(f"{place.path()}/one") == made


def test_what_a_webhook_adds_gets_the_defaults_of_the_namespace(place: Place) -> None:
    limits = [{"type": "Container", "default": {"cpu": "100m"}}]
    limit_range = {"metadata": {"name": "a"}, "spec": {"limits": limits}}
    place.api.create(place.path("limitranges"), limit_range)
    place.mutate("sidecar/proxy", rule={"resources": ["pods"]})
    pod = {"metadata": {"name": "a"}, "spec": {"containers": [{"name": "c", "image": "i"}]}}
    made = place.api.create(place.path("pods"), pod)
    shown = {one["name"]: one["resources"]["limits"] for one in made["spec"]["containers"]}
    assert shown == {"c": {"cpu": "100m"}, "proxy": {"cpu": "100m"}}


def test_a_webhook_may_give_what_validation_asks_for(place: Place) -> None:
    place.mutate("sidecar/proxy", rule={"resources": ["pods"]})
    made = place.api.create(
        place.path("pods"), {"metadata": {"name": "a"}, "spec": {"containers": []}}
    )
    assert [container["name"] for container in made["spec"]["containers"]] == ["proxy"]


def test_who_comes_before_a_change_is_asked_again_if_he_wants_to_be(place: Place) -> None:
    first = place.mutate("label-once/a", reinvocationPolicy="IfNeeded")
    place.mutate("label/b")
    third = place.mutate("allow", reinvocationPolicy="IfNeeded")
    made = place.create("one").json()
    assert made["metadata"]["labels"] == {"a": "1", "b": "1"}
    assert first < third
    assert len(place.reviews()) == 4  # the first one twice


def test_changes_by_webhooks_belong_to_no_manager(place: Place) -> None:
    place.mutate("label/a")
    made = place.create("one", x="1").json()
    (entry,) = made["metadata"]["managedFields"]
    assert entry["fieldsV1"] == {"f:data": {".": {}, "f:x": {}}}


def test_a_refusal_has_the_webhooks_words_and_code(place: Place) -> None:
    name = place.validate("deny/not today")
    response = place.create("a")
    assert response.status_code == 403
    assert message_of(response) == f'admission webhook "{name}" denied the request: not today'
    assert place.api.request("GET", f"{place.path()}/a").status_code == 404


def test_a_refusal_without_a_word_is_a_bad_request(place: Place) -> None:
    name = place.mutate("deny")
    response = place.create("a")
    assert response.status_code == 400
    assert (
        message_of(response) == f'admission webhook "{name}" denied the request without explanation'
    )


def test_warnings_come_to_the_client(place: Place) -> None:
    place.validate("warn/careful")
    headers = place.create("a").headers.get_list("warning")
    assert headers == ['299 - "careful"', '299 - "twice"']


def test_all_validating_webhooks_are_asked_at_once(place: Place) -> None:
    for _ in range(3):
        place.validate("meet/3", timeoutSeconds=30)
    assert place.create("a").status_code == 201


# --- which it is asked about


def test_selectors_and_conditions_narrow(place: Place) -> None:
    condition = {"name": "one", "expression": "object.data.x == '1'"}
    place.validate("deny/x", matchConditions=[condition])
    place.validate("deny/labels", objectSelector={"matchLabels": {"a": "b"}})
    assert place.create("a", x="1").status_code == 403
    assert place.create("b", x="2").status_code == 201
    labelled = {"metadata": {"name": "c", "labels": {"a": "b"}}, "data": {"x": "2"}}
    assert "labels" in message_of(place.api.request("POST", place.path(), labelled))


def test_a_condition_that_fails_refuses_unless_failures_are_ignored(place: Place) -> None:
    condition = {"name": "one", "expression": "object.data.missing == '1'"}
    place.validate("deny/x", matchConditions=[condition], failurePolicy="Ignore")
    assert place.create("a").status_code == 201
    place.validate("allow", matchConditions=[condition])
    refused = place.create("b")
    assert refused.status_code == 403
    assert "object.data.missing" in message_of(refused)


def test_subresources_are_asked_about_by_name(place: Place) -> None:
    place.validate("deny/bound", rule={"resources": ["pods/binding", "pods/eviction"]})
    pod = {"metadata": {"name": "a"}, "spec": {"containers": [{"name": "c", "image": "i"}]}}
    place.api.create(place.path("pods"), pod)
    binding = {"metadata": {"name": "a"}, "target": {"kind": "Node", "name": "n"}}
    bound = place.api.request("POST", f"{place.path('pods')}/a/binding", binding)
    eviction = {"apiVersion": "policy/v1", "kind": "Eviction", "metadata": {"name": "a"}}
    evicted = place.api.request("POST", f"{place.path('pods')}/a/eviction", eviction)
    assert (bound.status_code, evicted.status_code) == (403, 403)
    first, second = place.reviews()
    assert (first["kind"]["kind"], first["object"]["target"]["name"]) == ("Binding", "n")
    assert (first["subResource"], first["operation"]) == ("binding", "CREATE")
    assert second["kind"] == {"group": "policy", "version": "v1", "kind": "Eviction"}


def test_connections_are_asked_about(place: Place) -> None:
    place.validate("deny/closed", rule={"resources": ["pods/exec"], "operations": ["CONNECT"]})
    pod = {
        "metadata": {"name": "a"},
        "spec": {"nodeName": "n", "containers": [{"name": "c", "image": "i"}]},
    }
    node = {
        "metadata": {"name": "n"},
        "status": {"addresses": [{"type": "InternalIP", "address": "127.0.0.1"}]},
    }
    place.api.create("/api/v1/nodes", node)
    place.api.create(place.path("pods"), pod)
    response = place.api.client.get(
        f"{place.path('pods')}/a/exec?command=ls&command=-l&stdout=true",
        headers={"upgrade": "SPDY/3.1", "connection": "upgrade"},
    )
    assert "closed" in message_of(response)
    (review,) = place.reviews()
    assert (review["operation"], review["subResource"]) == ("CONNECT", "exec")
    assert review["object"] == {
        "kind": "PodExecOptions",
        "apiVersion": "v1",
        "stdout": True,
        "command": ["ls", "-l"],
    }


def test_an_equivalent_version_is_sent_as_the_rules_name_it(place: Place) -> None:
    rule = {
        "apiGroups": ["autoscaling"],
        "apiVersions": ["v1"],
        "resources": ["horizontalpodautoscalers"],
    }
    place.mutate("label/hook", rule=rule)
    path = f"/apis/autoscaling/v2/namespaces/{place.name}/horizontalpodautoscalers"
    target = {"kind": "Deployment", "name": "web", "apiVersion": "apps/v1"}
    made = place.api.create(
        path, {"metadata": {"name": "a"}, "spec": {"scaleTargetRef": target, "maxReplicas": 3}}
    )
    assert made["metadata"]["labels"] == {"hook": "1"}
    assert made["apiVersion"] == "autoscaling/v2"
    (review,) = place.reviews()
    assert review["object"]["apiVersion"] == "autoscaling/v1"
    assert review["kind"]["version"] == "v1"
    assert review["requestKind"]["version"] == "v2"


def test_webhooks_are_not_asked_about_webhooks(place: Place) -> None:
    everything = {"apiGroups": ["*"], "apiVersions": ["*"], "resources": ["*/*"]}
    place.validate("deny/all", rule=everything, namespaceSelector={})
    place.clear()
