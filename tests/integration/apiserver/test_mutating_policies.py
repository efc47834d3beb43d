"""MutatingAdmissionPolicies change writes over HTTP.

The cases follow test/integration/apiserver/cel/mutatingadmissionpolicy and
test/e2e/apimachinery/mutatingadmissionpolicy.go, Kubernetes 1.36.
"""

from __future__ import annotations

import itertools
from typing import Any

import httpx
import pytest

from kcm.testing.waiting import until
from tests.integration.apiserver.policies import GROUP, RULE, Place, message_of, place
from tests.integration.apiserver.serving import Live

__all__ = ["place"]

POLICIES, BINDINGS = (
    f"{GROUP}/mutatingadmissionpolicies",
    f"{GROUP}/mutatingadmissionpolicybindings",
)
_NUMBERS = itertools.count()


def mutate(place: Place, *mutations: dict[str, Any], waits: str = "", **spec: Any) -> str:
    """Writes a policy for a place, and returns its name once it changes or refuses what is written.

    `waits` is in the response of a write that it has met, by default the name of its marker.
    """
    name = f"{place.name}-m{next(_NUMBERS)}"
    marker = apply(f'Object{{metadata: Object.metadata{{annotations: {{"{name}": "met"}}}}}}')
    here = {"namespaceSelector": {"matchLabels": {"place": place.name}}}
    body = {
        "matchConstraints": {"resourceRules": [RULE], **here},
        "failurePolicy": "Fail",
        "reinvocationPolicy": "Never",
        "mutations": [*mutations, marker],
        **spec,
    }
    place.api.create(POLICIES, {"metadata": {"name": name}, "spec": body})
    place.api.create(BINDINGS, {"metadata": {"name": name}, "spec": {"policyName": name}})
    probe = {"metadata": {"generateName": "probe-"}}
    path = f"{place.path}?dryRun=All"
    until(lambda: (waits or name) in place.api.request("POST", path, probe).text, "the policy")
    return name


def apply(expression: str) -> dict[str, Any]:
    return {"patchType": "ApplyConfiguration", "applyConfiguration": {"expression": expression}}


def patch(expression: str) -> dict[str, Any]:
    return {"patchType": "JSONPatch", "jsonPatch": {"expression": expression}}


def read(response: httpx.Response) -> dict[str, Any]:
    assert response.status_code in {200, 201}, response.text
    body: dict[str, Any] = response.json()
    return body


def test_an_object_is_stored_as_the_policy_has_changed_it(place: Place, api: Live) -> None:
    mutate(
        place,
        apply('Object{metadata: Object.metadata{labels: {"by": request.userInfo.username}}}'),
        patch('[JSONPatch{op: "add", path: "/data", value: {"b": "2"}}]'),
    )
    created = read(place.create("new", a="1"))
    assert created["data"] == {"b": "2"}
    assert list(created["metadata"]["labels"]) == ["by"]
    stored = api.get(f"{place.path}/new")
    assert stored["data"] == {"b": "2"}


def test_updates_patches_and_applies_are_changed_too(place: Place, api: Live) -> None:
    assert place.create("old", a="1").status_code == 201
    mutate(place, apply("Object{data: {'seen': request.operation}}"))
    path = f"{place.path}/old"
    whole = api.get(path)
    assert read(api.request("PUT", path, whole))["data"] == {"a": "1", "seen": "UPDATE"}
    assert read(api.patch(path, {"data": {"seen": None}}))["data"]["seen"] == "UPDATE"
    applied = api.client.patch(
        f"{place.path}/applied",
        params={"fieldManager": "me"},
        json={"apiVersion": "v1", "kind": "ConfigMap", "data": {"a": "1"}},
        headers={"content-type": "application/apply-patch+yaml"},
    )
    assert read(applied)["data"] == {"a": "1", "seen": "CREATE"}


def test_variables_and_conditions(place: Place) -> None:
    mutate(
        place,
        apply("Object{data: {'n': string(variables.twice)}}"),
        variables=[{"name": "twice", "expression": "size(object.metadata.name) * 2"}],
        matchConditions=[{"name": "some", "expression": "!object.metadata.name.startsWith('not')"}],
    )
    assert read(place.create("four", a="1"))["data"] == {"a": "1", "n": "8"}
    assert read(place.create("not-me", a="1"))["data"] == {"a": "1"}


def test_a_policy_is_run_again_after_a_later_one(place: Place) -> None:
    mutate(
        place,
        apply("Object{data: {'size': string(has(object.data) ? size(object.data) : 0)}}"),
        reinvocationPolicy="IfNeeded",
    )
    mutate(place, apply("Object{data: {'late': 'yes'}}"))
    assert read(place.create("twice", a="1"))["data"] == {"a": "1", "late": "yes", "size": "3"}


def test_a_mutation_that_cannot_be_made_is_a_refusal(place: Place) -> None:
    name = mutate(place, apply("Object{spec: Object.wrong{}}"), waits="type mismatch")
    refused = place.create("one")
    body = refused.json()
    why = (
        f"policy '{name}' with binding '{name}' denied request: type mismatch: unexpected type "
        'name "Object.wrong", expected "Object.spec", which matches field name path from root '
        "Object type"
    )
    assert (refused.status_code, body["reason"], body["message"]) == (403, "Invalid", why)
    assert body["details"]["causes"] == [{"message": why}]


@pytest.mark.parametrize(
    ("mutation", "words"),
    [
        ({"patchType": "ApplyConfiguration"}, "spec.mutations[0].applyConfiguration"),
        ({"patchType": "Merge"}, "spec.mutations[0].patchType"),
        (apply("Object{"), "spec.mutations[0].applyConfiguration.expression"),
        (patch("object.nothing("), "spec.mutations[0].jsonPatch.expression"),
    ],
)
def test_a_policy_that_could_never_work_is_refused(
    place: Place, mutation: dict[str, Any], words: str
) -> None:
    spec = {
        "matchConstraints": {"resourceRules": [RULE]},
        "failurePolicy": "Fail",
        "reinvocationPolicy": "Never",
        "mutations": [mutation],
    }
    refused = place.api.request("POST", POLICIES, {"metadata": {"name": "wrong"}, "spec": spec})
    assert refused.status_code == 422
    assert words in message_of(refused)
