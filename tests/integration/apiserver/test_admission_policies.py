"""ValidatingAdmissionPolicies decide about writes over HTTP.

The cases follow admission_test.go and policy_test_context of
staging/src/k8s.io/apiserver/pkg/admission/plugin/policy/validating and
test/integration/apiserver/cel/validatingadmissionpolicy_test.go, Kubernetes 1.33.
"""

from __future__ import annotations

from typing import Any

import pytest

from kcm.testing.waiting import until
from tests.integration.apiserver.kubectl import Kubectl
from tests.integration.apiserver.policies import (
    BINDINGS,
    POLICIES,
    RULE,
    Place,
    message_of,
    place,
)
from tests.integration.apiserver.serving import Live

__all__ = ["place"]


def test_what_a_policy_refuses_is_refused_in_upstreams_words(place: Place) -> None:
    name = place.enforce()
    assert place.create("good", a="x").status_code == 201
    refused = place.create("bad", a="y")
    body = refused.json()
    why = (
        f"ValidatingAdmissionPolicy '{name}' with binding '{name}' denied request: failed "
        "expression: object.data.a == 'x'"
    )
    assert (refused.status_code, body["reason"]) == (422, "Invalid")
    assert body["message"] == f'configmaps "bad" is forbidden: {why}'
    assert body["details"] == {"name": "bad", "kind": "configmaps", "causes": [{"message": why}]}


@pytest.mark.parametrize(
    ("validation", "code", "words"),
    [
        ({"message": " say x "}, 422, "denied request: say x"),
        ({"messageExpression": "'not ' + object.data.a"}, 422, "denied request: not y"),
        ({"messageExpression": "object.nothing", "message": "say x"}, 422, "request: say x"),
        ({"messageExpression": "'two\\nlines'"}, 422, "failed expression: object.data.a"),
        ({"reason": "Forbidden"}, 403, "denied request: failed expression"),
        ({"reason": "Unauthorized"}, 401, "denied request: failed expression"),
        ({"reason": "RequestEntityTooLarge"}, 413, "denied request: failed expression"),
    ],
)
def test_messages_and_reasons(
    place: Place, validation: dict[str, Any], code: int, words: str
) -> None:
    if "messageExpression" in validation and "nothing" in validation["messageExpression"]:
        validation = validation | {"messageExpression": "string(object.nothing)"}
    place.enforce(validation=validation)
    refused = place.create("bad", a="y")
    assert (refused.status_code, words in message_of(refused)) == (code, True)


def test_each_operation_is_checked_with_what_was_and_will_be(place: Place) -> None:
    place.enforce(
        "oldObject == null || object == null || object.data.a == oldObject.data.a",
        validation={"message": "a stays"},
    )
    place.enforce(
        "request.operation != 'DELETE' || !has(oldObject.metadata.labels.keep)",
        validation={"message": "kept"},
    )
    assert place.create("one", a="1").status_code == 201
    path = f"{place.path}/one"
    changed = place.api.patch(path, {"data": {"a": "2"}})
    assert "denied request: a stays" in message_of(changed)
    assert place.api.patch(path, {"metadata": {"labels": {"keep": ""}}}).status_code == 200
    deleted = place.api.request("DELETE", path)
    assert (deleted.status_code, "denied request: kept" in message_of(deleted)) == (422, True)
    assert place.api.get(path)["data"] == {"a": "1"}
    together = place.api.request("DELETE", place.path)
    assert together.status_code == 422
    assert place.api.patch(path, {"metadata": {"labels": {"keep": None}}}).status_code == 200
    assert place.api.request("DELETE", path).status_code == 200


def test_a_dry_run_is_checked_too(place: Place) -> None:
    place.enforce("!request.dryRun", validation={"message": "for real only"})
    body = {"metadata": {"name": "dry"}}
    refused = place.api.request("POST", f"{place.path}?dryRun=All", body)
    assert "for real only" in message_of(refused)
    assert place.create("dry").status_code == 201


def test_actions_warn_and_audit_instead_of_denying(place: Place) -> None:
    name = place.enforce(actions=("Warn", "Audit"), validation={"message": "say x"})
    accepted = place.create("warned", a="y")
    assert accepted.status_code == 201
    assert accepted.headers["warning"] == (
        f"299 - \"Validation failed for ValidatingAdmissionPolicy '{name}' with binding '{name}': "
        'say x"'
    )
    assert "warning" not in place.create("fine", a="x").headers


def test_a_policy_without_a_binding_does_nothing(place: Place, api: Live) -> None:
    name = place.enforce("false")
    assert place.create("one").status_code == 422
    api.request("DELETE", f"{BINDINGS}/{name}")
    place.wait()
    assert place.create("one").status_code == 201


# --- which requests


def condition(expression: str) -> dict[str, Any]:
    return {"name": "m", "expression": expression}


@pytest.mark.parametrize(
    ("changes", "applies"),
    [
        ({"rule": {"operations": ["UPDATE"]}}, False),
        ({"rule": {"operations": ["CREATE", "UPDATE"]}}, True),
        ({"rule": {"apiGroups": ["apps"]}}, False),
        ({"rule": {"apiGroups": ["*"], "resources": ["*"]}}, True),
        ({"rule": {"resources": ["*/*"]}}, True),
        ({"rule": {"resources": ["configmaps/status"]}}, False),
        ({"rule": {"apiVersions": ["v2"]}}, False),
        ({"rule": {"scope": "Namespaced"}}, True),
        ({"rule": {"scope": "Cluster"}}, False),
        ({"rule": {"resourceNames": ["one"]}}, True),
        ({"rule": {"resourceNames": ["two"]}}, False),
        ({"constraints": {"objectSelector": {"matchLabels": {"a": "b"}}}}, False),
        ({"constraints": {"namespaceSelector": {"matchLabels": {"tier": "gold"}}}}, True),
        ({"constraints": {"namespaceSelector": {"matchLabels": {"tier": "lead"}}}}, False),
        ({"constraints": {"excludeResourceRules": [RULE]}}, False),
        ({"constraints": {"excludeResourceRules": [RULE | {"resourceNames": ["two"]}]}}, True),
        ({"matchConditions": [condition("object.metadata.name == 'one'")]}, True),
        ({"matchConditions": [condition("object.metadata.name == 'two'")]}, False),
        (
            {
                "matchConditions": [
                    {"name": "fails", "expression": "object.nothing == 1"},
                    {"name": "false", "expression": "request.operation == 'DELETE'"},
                ]
            },
            False,
        ),
    ],
)
def test_rules_selectors_and_conditions_say_which_requests(
    place: Place, changes: dict[str, Any], applies: bool
) -> None:
    place.enforce("false", **changes)
    assert place.create("one").status_code == (422 if applies else 201)


def test_other_versions_of_a_kind_are_equivalent_unless_exact(place: Place, api: Live) -> None:
    rule = {
        "apiGroups": ["autoscaling"],
        "apiVersions": ["v1"],
        "resources": ["horizontalpodautoscalers"],
    }
    path = f"/apis/autoscaling/v2/namespaces/{place.name}/horizontalpodautoscalers"
    target = {"apiVersion": "apps/v1", "kind": "Deployment", "name": "web"}
    spec = {"scaleTargetRef": target, "maxReplicas": 9}
    body: dict[str, Any] = {"metadata": {"name": "web"}, "spec": spec}
    name = place.enforce(
        "object.apiVersion == 'autoscaling/v1' && request.kind.version == 'v1' && "
        "request.requestKind.version == 'v2' && object.spec.maxReplicas < 5",
        rule=rule,
    )
    refused = api.request("POST", path, body)
    assert (refused.status_code, name in message_of(refused)) == (422, True)
    small = body | {"spec": {**spec, "maxReplicas": 3}}
    assert api.request("POST", path, small).status_code == 201
    place.clear()
    place.enforce("false", rule=rule, constraints={"matchPolicy": "Exact"})
    other = body | {"metadata": {"name": "other"}}
    assert api.request("POST", path, other).status_code == 201


def test_policies_cannot_keep_anybody_from_changing_policies(place: Place, api: Live) -> None:
    everything = {"apiGroups": ["*"], "apiVersions": ["*"], "resources": ["*"]}
    name = place.enforce("false", rule=everything)
    assert place.create("one").status_code == 422
    assert api.patch(f"{POLICIES}/{name}", {"metadata": {"labels": {"a": "b"}}}).status_code == 200


def test_scale_and_status_are_resources_of_their_own(place: Place, api: Live) -> None:
    path = f"/apis/apps/v1/namespaces/{place.name}/deployments"
    template = {
        "metadata": {"labels": {"app": "web"}},
        "spec": {"containers": [{"name": "c", "image": "i:1"}]},
    }
    spec = {"selector": {"matchLabels": {"app": "web"}}, "template": template}
    place.enforce(
        "object.kind == 'Scale' && object.spec.replicas < 5",
        rule={"apiGroups": ["apps"], "resources": ["deployments/scale"]},
        validation={"message": "too many"},
    )
    api.create(path, {"metadata": {"name": "web"}, "spec": {**spec, "replicas": 9}})
    scale = f"{path}/web/scale"
    assert "too many" in message_of(api.patch(scale, {"spec": {"replicas": 8}}))
    assert api.patch(scale, {"spec": {"replicas": 2}}).status_code == 200


# --- the rest


def test_checks_are_counted(place: Place, api: Live) -> None:
    name = place.enforce()
    place.create("good", a="x")
    place.create("bad", a="y")
    page = api.request("GET", "/metrics").text
    total = "apiserver_validating_admission_policy_check_total"
    labels = f'error_type="no_error",policy="{name}",policy_binding="{name}"'
    assert f'{total}{{enforcement_action="allow",{labels}}}' not in page  # as upstream
    assert f'{total}{{enforcement_action="deny",{labels}}} 1.0' in page
    assert "apiserver_validating_admission_policy_check_duration_seconds_bucket" in page


def test_kubectl_shows_and_obeys_them(kubectl: Kubectl, api: Live) -> None:
    place = Place(api)
    name = place.enforce(validation={"message": "say x"})
    lines = [line.split() for line in kubectl("get", "validatingadmissionpolicies").splitlines()]
    assert [name, "1", "<unset>"] in [line[:3] for line in lines]
    lines = [
        line.split() for line in kubectl("get", "validatingadmissionpolicybindings").splitlines()
    ]
    assert [name, name, "<unset>"] in [line[:3] for line in lines]
    failed = kubectl.run_failing(
        "create", "configmap", "bad", "-n", place.name, "--from-literal=a=y"
    )
    assert "denied request: say x" in failed
    place.clear()


def test_a_deleted_policy_no_longer_holds(place: Place) -> None:
    place.enforce("false")
    assert place.create("one").status_code == 422
    place.clear()
    until(lambda: place.create("one").status_code == 201)
