"""Admission policies and webhooks about kinds that a webhook converts."""

from __future__ import annotations

from tests.integration.apiserver.conversions import Gateways, gateways, message_of, server

__all__ = ["gateways", "server"]

OLD, NEW = {"hostPort": "shop:80"}, {"host": "shop", "port": 80}


def test_policies_see_the_version_that_their_rules_name(gateways: Gateways) -> None:
    api, name = gateways.api, gateways.group
    admission = "/apis/admissionregistration.k8s.io/v1"
    rule = {"apiGroups": [name], "apiVersions": ["v1"], "resources": ["gateways"]}
    spec = {
        "matchConstraints": {"resourceRules": [{**rule, "operations": ["CREATE"]}]},
        "validations": [{"expression": "object.spec.port != 80", "message": "port 80 is taken"}],
    }
    policies = f"{admission}/validatingadmissionpolicies"
    bindings = f"{admission}/validatingadmissionpolicybindings"
    api.create(policies, {"metadata": {"name": name}, "spec": spec})
    binding = {"policyName": name, "validationActions": ["Deny"]}
    api.create(bindings, {"metadata": {"name": name}, "spec": binding})
    api.get(bindings)
    refused = api.request("POST", gateways.path(version="v1beta1"), gateways.gateway("a"))
    assert "denied request: port 80 is taken" in message_of(refused)
    [review] = gateways.reviews()
    assert review["desiredAPIVersion"] == f"{name}/v1"
    for path in (policies, bindings):
        assert api.client.delete(f"{path}/{name}").status_code == 200


def test_admission_webhooks_see_and_patch_the_version_that_their_rules_name(
    gateways: Gateways,
) -> None:
    api, name = gateways.api, gateways.group
    path = "/apis/admissionregistration.k8s.io/v1/mutatingwebhookconfigurations"
    rule = {"apiGroups": [name], "apiVersions": ["v1"], "resources": ["gateways"]}
    webhook = {
        "name": name,
        "clientConfig": gateways.server.at("label/seen"),
        "rules": [{**rule, "operations": ["CREATE"]}],
        "sideEffects": "None",
        "admissionReviewVersions": ["v1"],
    }
    api.create(path, {"metadata": {"name": name}, "webhooks": [webhook]})
    api.get(path)
    gateways.reviews()
    made = gateways.create("a")
    assert (made["spec"], made["metadata"]["labels"]) == (OLD, {"seen": "1"})
    reviews = gateways.reviews()
    [asked] = [review for review in reviews if "object" in review]
    assert asked["object"]["spec"] == NEW
    assert [review["desiredAPIVersion"] for review in reviews if "objects" in review] == [
        f"{name}/v1",  # for the webhook
        f"{name}/v1",  # to be patched
        f"{name}/v1beta1",
    ]
    assert api.client.delete(f"{path}/{name}").status_code == 200


def test_validating_webhooks_see_the_version_that_their_rules_name(gateways: Gateways) -> None:
    """The object is converted for each of them, which must not hold up the event loop."""
    api, name = gateways.api, gateways.group
    path = "/apis/admissionregistration.k8s.io/v1/validatingwebhookconfigurations"
    rule = {"apiGroups": [name], "apiVersions": ["v1"], "resources": ["gateways"]}
    for count in (1, 2):
        webhooks = [
            {
                "name": f"{number}.{name}",
                "clientConfig": gateways.server.at("allow"),
                "rules": [{**rule, "operations": ["CREATE"]}],
                "sideEffects": "None",
                "admissionReviewVersions": ["v1"],
            }
            for number in range(count)
        ]
        api.create(path, {"metadata": {"name": name}, "webhooks": webhooks})
        api.get(path)
        gateways.reviews()
        assert gateways.create(f"a{count}")["spec"] == OLD
        asked = [review for review in gateways.reviews() if "object" in review]
        assert [review["object"]["spec"] for review in asked] == [NEW] * count
        assert api.client.delete(f"{path}/{name}").status_code == 200
        api.get(path)
