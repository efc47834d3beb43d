"""What the expressions of ValidatingAdmissionPolicies see, and their parameters."""

from __future__ import annotations

from typing import Any

import pytest

from tests.integration.apiserver.policies import (
    BINDINGS,
    CONFIG_MAPS,
    POLICIES,
    RULE,
    Place,
    message_of,
    place,
)
from tests.integration.apiserver.serving import Live

__all__ = ["place"]


def condition(expression: str) -> dict[str, Any]:
    return {"name": "m", "expression": expression}


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
        "!format.dns1123Label().validate(object.metadata.name).hasValue()",
        "format.named('uri').value().validate(object.data.ip).orValue([]).size() == 1",
        "string(ip(object.data.ip)) == object.data.ip",
        "sets.contains(['a', 'size', 'ip', 'url'], object.data.transformList(k, v, k))",
        "object.data.transformMap(k, v, k == 'a', v + '!') == {'a': 'x!'}",
        "authorizer.group('').resource('pods').labelSelector('a=b').check('list').allowed()",
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
        "denied request: expression 'object.nothing == 1' resulted in error: no such key: nothing"
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
