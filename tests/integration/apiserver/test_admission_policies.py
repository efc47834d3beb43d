"""ValidatingAdmissionPolicies decide about writes over HTTP.

The cases follow admission_test.go and policy_test_context of
staging/src/k8s.io/apiserver/pkg/admission/plugin/policy/validating and
test/integration/apiserver/cel/validatingadmissionpolicy_test.go, Kubernetes 1.33.
"""

from __future__ import annotations

import itertools
from collections.abc import Iterator
from typing import Any

import httpx
import pytest

from kcm.testing.waiting import until
from tests.integration.apiserver.kubectl import Kubectl
from tests.integration.apiserver.serving import Live

GROUP = "/apis/admissionregistration.k8s.io/v1"
POLICIES = f"{GROUP}/validatingadmissionpolicies"
BINDINGS = f"{GROUP}/validatingadmissionpolicybindings"
_NUMBERS = itertools.count()
RULE = {"apiGroups": [""], "apiVersions": ["v1"], "operations": ["*"], "resources": ["configmaps"]}
CONFIG_MAPS = "/api/v1/namespaces/{}/configmaps"


class Place:
    """A namespace of its own, with policies that hold there only."""

    def __init__(self, api: Live) -> None:
        self.api = api
        self.name = f"policies-{next(_NUMBERS)}"
        labels = {"place": self.name, "tier": "gold"}
        api.create("/api/v1/namespaces", {"metadata": {"name": self.name, "labels": labels}})
        self._policies: list[str] = []

    @property
    def path(self) -> str:
        return CONFIG_MAPS.format(self.name)

    def enforce(
        self,
        expression: str = "object.data.a == 'x'",
        *,
        actions: tuple[str, ...] = ("Deny",),
        rule: dict[str, Any] | None = None,
        binding: dict[str, Any] | None = None,
        constraints: dict[str, Any] | None = None,
        validation: dict[str, Any] | None = None,
        **spec: Any,
    ) -> str:
        """Writes a policy and its binding, waits until they hold, and returns their name."""
        name = f"{self.name}-{next(_NUMBERS)}"
        matching = {"resourceRules": [{**RULE, **(rule or {})}], **(constraints or {})}
        body = {
            "matchConstraints": matching,
            "validations": [{"expression": expression, **(validation or {})}],
            **spec,
        }
        self.api.create(POLICIES, {"metadata": {"name": name}, "spec": body})
        here = {"namespaceSelector": {"matchLabels": {"place": self.name}}}
        bound = {
            "policyName": name,
            "validationActions": list(actions),
            "matchResources": here,
            **(binding or {}),
        }
        self.api.create(BINDINGS, {"metadata": {"name": name}, "spec": bound})
        self._policies.append(name)
        self.wait()
        return name

    def wait(self) -> None:
        """Waits until the server's caches have every write."""
        for path in (POLICIES, BINDINGS, "/api/v1/namespaces", self.path):
            self.api.get(path)

    def create(self, name: str, **data: str) -> httpx.Response:
        return self.api.request("POST", self.path, {"metadata": {"name": name}, "data": data})

    def clear(self) -> None:
        for name in self._policies:
            self.api.request("DELETE", f"{BINDINGS}/{name}")
            self.api.request("DELETE", f"{POLICIES}/{name}")
        self.wait()


@pytest.fixture
def place(api: Live) -> Iterator[Place]:
    made = Place(api)
    yield made
    made.clear()


def message_of(response: httpx.Response) -> str:
    text: str = response.json()["message"]
    return text


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


# --- what expressions see


@pytest.mark.parametrize(
    "expression",
    [
        "request.userInfo.username == 'kubernetes-admin'",
        "'system:masters' in request.userInfo.groups",
        "request.resource.resource == 'configmaps' && request.kind.kind == 'ConfigMap'",
        "namespaceObject.metadata.labels.tier == 'gold'",
        "object.metadata.namespace == request.namespace",
        "oldObject == null",
        "authorizer.group('').resource('pods').namespace('x').check('create').allowed()",
        "authorizer.requestResource.check('create').allowed()",
        "authorizer.path('/healthz').check('get').allowed()",
        "!authorizer.serviceAccount('default', 'a').group('').resource('pods').check('list')"
        ".allowed()",
        "quantity(object.data.size).isLessThan(quantity('2Gi'))",
        "ip(object.data.ip).isLoopback() && isURL(object.data.url)",
        "object.data.all(k, k != 'forbidden')",
        "object.data.a.replace('x', 'y') == 'y'",
    ],
)
def test_expressions_see_the_request(place: Place, expression: str) -> None:
    place.enforce(expression)
    data = {"a": "x", "size": "1Gi", "ip": "127.0.0.1", "url": "https://example.com"}
    response = place.create("one", **data)
    assert response.status_code == 201, response.text


def test_variables_are_computed_when_they_are_used(place: Place) -> None:
    place.enforce(
        "!has(object.data.size) || variables.double < 10",
        variables=[
            {"name": "size", "expression": "int(object.data.size)"},
            {"name": "double", "expression": "variables.size * 2"},
        ],
        validation={"messageExpression": "'size ' + string(variables.size)"},
    )
    assert place.create("none").status_code == 201
    assert place.create("small", size="4").status_code == 201
    assert "denied request: size 5" in message_of(place.create("large", size="5"))
    wrong = message_of(place.create("wrong", size="many"))
    assert 'composited variable "double" fails to evaluate' in wrong


def test_failures_follow_the_failure_policy(place: Place) -> None:
    place.enforce("object.nothing == 1", failurePolicy="Ignore")
    assert place.create("one").status_code == 201
    place.enforce("object.nothing == 1")
    assert (
        "denied request: expression 'object.nothing == 1' resulted in error: Key not found"
        in message_of(place.create("two"))
    )


def test_an_endless_expression_costs_its_own_requests_only(place: Place) -> None:
    loops = "object.data.all(a, object.data.all(b, object.data.all(c, a.replace('', b) != c)))"
    place.enforce(loops.replace("a.replace('', b)", "a.replace('', b.replace('', a))"))
    data = {f"{'k' * 150}{number}": "x" for number in range(60)}
    refused = place.create("large", **data)
    assert "running out of cost budget" in message_of(refused)
    elsewhere = {"metadata": {"name": f"free-of-{place.name}"}}
    created = place.api.request("POST", CONFIG_MAPS.format("default"), elsewhere)
    assert created.status_code == 201


# --- parameters


def params(**reference: Any) -> dict[str, Any]:
    return {
        "paramRef": {"parameterNotFoundAction": "Deny", **reference},
    }


CONFIG_MAP_PARAMS: dict[str, Any] = {"paramKind": {"apiVersion": "v1", "kind": "ConfigMap"}}


def test_parameters_are_objects_of_the_namespace(place: Place) -> None:
    here = {"matchResources": {"namespaceSelector": {"matchLabels": {"place": place.name}}}}
    assert place.create("limits", most="3").status_code == 201
    place.enforce(
        "object.metadata.name == 'limits' || size(object.data) <= int(params.data.most)",
        binding=here | params(name="limits"),
        **CONFIG_MAP_PARAMS,
    )
    assert place.create("few", a="1", b="2").status_code == 201
    assert place.create("many", a="1", b="2", c="3", d="4").status_code == 422
    assert place.api.request("DELETE", f"{place.path}/limits").status_code in (200, 422)


def test_a_selector_evaluates_for_each_parameter(place: Place) -> None:
    for name, most in (("one", "5"), ("two", "2")):
        body = {"metadata": {"name": name, "labels": {"is": "limit"}}, "data": {"most": most}}
        place.api.create(place.path, body)
    here = {"matchResources": {"namespaceSelector": {"matchLabels": {"place": place.name}}}}
    selector = {"matchLabels": {"is": "limit"}}
    place.enforce(
        "size(object.data) <= int(params.data.most)",
        binding=here | params(selector=selector),
        **CONFIG_MAP_PARAMS,
    )
    assert place.create("few", a="1", b="2").status_code == 201
    assert place.create("many", a="1", b="2", c="3").status_code == 422


@pytest.mark.parametrize(("action", "code"), [("Deny", 422), ("Allow", 201)])
def test_missing_parameters(place: Place, action: str, code: int) -> None:
    here = {"matchResources": {"namespaceSelector": {"matchLabels": {"place": place.name}}}}
    reference = params(name="absent", parameterNotFoundAction=action)
    place.enforce("false", binding=here | reference, **CONFIG_MAP_PARAMS)
    response = place.create("one")
    assert response.status_code == code
    if code == 422:
        assert "failed to configure binding: no params found" in message_of(response)


def test_a_kind_of_parameters_that_does_not_exist(place: Place) -> None:
    here = {"matchResources": {"namespaceSelector": {"matchLabels": {"place": place.name}}}}
    kind: dict[str, Any] = {"paramKind": {"apiVersion": "example.com/v1", "kind": "Limit"}}
    place.enforce("true", binding=here | params(name="x"), **kind)
    words = "failed to configure policy: failed to find resource referenced by paramKind"
    assert words in message_of(place.create("one"))


def test_only_who_may_read_parameters_may_name_them(place: Place, api: Live) -> None:
    group = "rbac.authorization.k8s.io"
    roles = f"/apis/{group}/v1/clusterroles"
    policies = ["validatingadmissionpolicies", "validatingadmissionpolicybindings"]
    rule = {"apiGroups": ["admissionregistration.k8s.io"], "resources": policies, "verbs": ["*"]}
    api.create(roles, {"metadata": {"name": "writes-policies"}, "rules": [rule]})
    reference = {"apiGroup": group, "kind": "ClusterRole", "name": "writes-policies"}
    subject = {"apiGroup": group, "kind": "User", "name": "bob"}
    api.create(
        f"/apis/{group}/v1/clusterrolebindings",
        {"metadata": {"name": "bob-writes"}, "roleRef": reference, "subjects": [subject]},
    )
    api.get(roles)
    api.get(f"/apis/{group}/v1/clusterrolebindings")
    name = f"{place.name}-secrets"
    spec = {
        "paramKind": {"apiVersion": "v1", "kind": "Secret"},
        "matchConstraints": {"resourceRules": [RULE]},
        "validations": [{"expression": "params.data.a == 'x'"}],
    }
    policy = {"metadata": {"name": name}, "spec": spec}
    bound = {"policyName": name, "validationActions": ["Deny"], **params(name="x")}
    binding = {"metadata": {"name": name}, "spec": bound}
    with api.as_user("bobs-token") as bob:
        refused = bob.post(POLICIES, json=policy)
        assert (refused.status_code, refused.json()["message"]) == (
            422,
            f'ValidatingAdmissionPolicy "{name}" is invalid: spec.paramKind: Forbidden: user bob '
            'must have "get" permission on all objects of the referenced paramKind (kind=Secret, '
            "apiVersion=v1)",
        )
        api.create(POLICIES, policy)
        refused = bob.post(BINDINGS, json=binding)
        assert "spec.paramRef: Forbidden" in refused.json()["message"]
        changed = {"metadata": {"labels": {"a": "b"}}}
        headers = {"content-type": "application/merge-patch+json"}
        assert bob.patch(f"{POLICIES}/{name}", json=changed, headers=headers).status_code == 200


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
