"""The cases follow TestValidateValidatingWebhookConfiguration and its like in
pkg/apis/admissionregistration/validation/validation_test.go and
staging/src/k8s.io/apiserver/pkg/util/webhook/validation_test.go, Kubernetes 1.33.
"""

from __future__ import annotations

from typing import Any

import pytest

from kcm.api import codec
from kcm.api.scheme import BUILT_IN
from kcm.kinds import defaults
from kcm.kinds.validation import validate_create, validate_update
from tests.samples import manifest

GROUP = "admissionregistration.k8s.io"
VALIDATING = f"validatingwebhookconfigurations.{GROUP}"
MUTATING = f"mutatingwebhookconfigurations.{GROUP}"
RULE = {"operations": ["CREATE"], "apiGroups": ["a"], "apiVersions": ["a"], "resources": ["a"]}


def configuration(kind: str, *webhooks: dict[str, Any]) -> Any:
    body = manifest(kind)
    body["webhooks"] = [{**body["webhooks"][0], **fields} for fields in webhooks]
    return defaults.apply(codec.decode(body, BUILT_IN))


def faults(kind: str = VALIDATING, **fields: Any) -> list[str]:
    return [str(fault) for fault in validate_create(configuration(kind, fields))]


def service(**fields: Any) -> dict[str, Any]:
    return {"clientConfig": {"service": {"namespace": "ns", "name": "n", **fields}}}


def url(text: str) -> dict[str, Any]:
    return {"clientConfig": {"url": text}}


def rule(**fields: Any) -> dict[str, Any]:
    return {"rules": [{**RULE, **fields}]}


def condition(name: str, expression: str = "true") -> dict[str, str]:
    return {"name": name, "expression": expression}


@pytest.mark.parametrize(
    "fields",
    [
        {},
        rule(operations=["*"]),
        rule(resources=["*", "a/x"]),
        rule(resources=["a/*", "a"]),
        rule(resources=["*/*"]),
        rule(apiGroups=[""]),
        {"failurePolicy": "Ignore"},
        {"sideEffects": "NoneOnDryRun"},
        {"timeoutSeconds": 30},
        {"admissionReviewVersions": ["v1", "v2alpha1"]},
        {"admissionReviewVersions": ["v1beta1"]},
        {"rules": []},
        url("https://example.com/hook"),
        url("https://example.com:9443"),
        service(path="/"),
        service(path="/foo"),
        service(path="/foo/"),
        service(path="/apis/foo.bar/v1alpha1"),
        service(port=8443),
        {"matchConditions": [condition("a"), condition("example.com/b")]},
        {"matchConditions": [condition("a", "object.spec.x == request.name")]},
        {"matchConditions": [condition("a", "authorizer.path('/x').check('get').allowed()")]},
    ],
)
def test_such_webhooks_are_valid(fields: dict[str, Any]) -> None:
    assert faults(**fields) == []
    assert faults(MUTATING, **fields) == []


@pytest.mark.parametrize(
    ("fields", "words"),
    [
        ({"name": ""}, "name: Required value"),
        ({"name": "k8s.io"}, "should be a domain with at least three segments separated by dots"),
        ({"name": "A.k8s.io"}, 'name: Invalid value: "A.k8s.io": a lowercase RFC 1123 subdomain'),
        (rule(operations=[]), "rules[0].operations: Required value"),
        (rule(operations=[""]), 'rules[0].operations[0]: Unsupported value: ""'),
        (rule(operations=["PATCH"]), 'rules[0].operations[0]: Unsupported value: "PATCH"'),
        (rule(operations=["CREATE", "*"]), "if '*' is present, must not specify other operations"),
        (rule(apiGroups=["a", "*"]), "if '*' is present, must not specify other API groups"),
        (rule(apiVersions=["a", "*"]), "if '*' is present, must not specify other API versions"),
        (rule(apiVersions=[""]), "rules[0].apiVersions[0]: Required value"),
        (rule(resources=[]), "rules[0].resources: Required value"),
        (
            rule(resources=["*", "a"]),
            "if '*' is present, must not specify other resources without subresources",
        ),
        (rule(resources=["a/*", "a/x"]), "if 'a/*' is present, must not specify a/x"),
        (rule(resources=["*/a", "x/a"]), "if '*/a' is present, must not specify x/a"),
        (rule(resources=["*/*", "a"]), "if '*/*' is present, must not specify other resources"),
        (rule(scope="All"), 'rules[0].scope: Unsupported value: "All"'),
        ({"failurePolicy": "other"}, 'failurePolicy: Unsupported value: "other"'),
        ({"matchPolicy": "other"}, 'matchPolicy: Unsupported value: "other"'),
        ({"sideEffects": None}, "sideEffects: Required value: must specify one of None, NoneOn"),
        ({"sideEffects": "Some"}, 'sideEffects: Unsupported value: "Some"'),
        ({"timeoutSeconds": 0}, "the timeout value must be between 1 and 30 seconds"),
        ({"timeoutSeconds": 31}, "timeoutSeconds: Invalid value: 31"),
        ({"timeoutSeconds": -1}, "timeoutSeconds: Invalid value: -1"),
        ({"admissionReviewVersions": []}, "Required value: must specify one of v1, v1beta1"),
        ({"admissionReviewVersions": ["v2"]}, "must include at least one of v1, v1beta1"),
        ({"admissionReviewVersions": ["v1", "v1"]}, 'Versions[1]: Invalid value: "v1": duplicate'),
        ({"admissionReviewVersions": ["v1", "1v"]}, "admissionReviewVersions[1]: Invalid value"),
        ({"clientConfig": {}}, "clientConfig: Required value: exactly one of url or service"),
        (
            {"clientConfig": {**url("https://a")["clientConfig"], **service()["clientConfig"]}},
            "clientConfig: Required value: exactly one of url or service is required",
        ),
        (url(""), "'https' is the only allowed URL scheme; desired format: https://host[/path]"),
        (url("http://example.com"), "clientConfig.url: Invalid value: \"http\": 'https' is the"),
        (url("https:///fancy/webhook"), "host must be specified"),
        (url("https://example.com/#frag"), "fragments are not permitted in the URL"),
        (url("https://example.com?arg=value"), "query parameters are not permitted in the URL"),
        (url("https://harry@example.com/"), "user information is not permitted in the URL"),
        (url("https://example.com:port"), "url must be a valid URL"),
        (service(name=""), "clientConfig.service.name: Required value"),
        (service(namespace=""), "clientConfig.service.namespace: Required value"),
        (service(port=0), "service.port: Invalid value: 0: port is not valid: must be between 1"),
        (service(port=65536), "service.port: Invalid value: 65536"),
        (service(path="foo/"), "must start with a '/'"),
        (service(path="//"), "segment[0] may not be empty"),
        (service(path="/foo//bar/"), "segment[1] may not be empty"),
        (service(path="/foo/bar//"), "segment[2] may not be empty"),
        (service(path="/apis/foo.bar/v1alpha1/--bad"), "segment[3]: a lowercase RFC 1123"),
        ({"matchConditions": [condition("a"), condition("a")]}, "matchConditions[1].name: Dupl"),
        ({"matchConditions": [condition("")]}, "matchConditions[0].name: Required value"),
        ({"matchConditions": [condition("a", "")]}, "matchConditions[0].expression: Required"),
        ({"matchConditions": [condition("a", "1")]}, "must evaluate to bool"),
        ({"matchConditions": [condition("a", "params.x")]}, "undeclared reference to 'params"),
        ({"matchConditions": [condition("a", "variables.x")]}, "undefined field 'x'"),
        ({"matchConditions": [condition(f"a{n}") for n in range(65)]}, "Too many: 65: must have"),
    ],
)
def test_others_are_refused_in_upstreams_words(fields: dict[str, Any], words: str) -> None:
    for kind in (VALIDATING, MUTATING):
        assert any(words in fault for fault in faults(kind, **fields)), faults(kind, **fields)


def test_only_mutating_webhooks_are_asked_again() -> None:
    assert faults(MUTATING, reinvocationPolicy="IfNeeded") == []
    (fault,) = faults(MUTATING, reinvocationPolicy="Always")
    assert fault.startswith('webhooks[0].reinvocationPolicy: Unsupported value: "Always"')


def test_names_are_unique() -> None:
    same = {"name": "a.example.com"}
    (fault,) = validate_create(configuration(VALIDATING, same, same))
    assert str(fault) == 'webhooks[1].name: Duplicate value: "a.example.com"'


def test_an_expression_that_was_stored_is_not_compiled_again() -> None:
    old = configuration(VALIDATING, {"matchConditions": [condition("a", "no longer valid")]})
    new = configuration(VALIDATING, {"matchConditions": [condition("b", "no longer valid")]})
    assert validate_update(new, old) == []
    other = configuration(VALIDATING, {"matchConditions": [condition("b", "another one")]})
    assert len(validate_update(other, old)) == 1
