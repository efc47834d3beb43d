"""After TestTypeChecking of pkg/controller/validatingadmissionpolicystatus/controller_test.go and
TestExtractTypeNames and TestTypeCheck of
staging/src/k8s.io/apiserver/pkg/admission/plugin/policy/validating/typechecking_test.go.
"""

from __future__ import annotations

from typing import Any

import pytest

from kcm.api.admissionregistration_v1 import (
    ValidatingAdmissionPolicy,
    ValidatingAdmissionPolicyStatus,
)
from kcm.api.scheme import BUILT_IN, Scheme
from kcm.apiextensions.registration import register
from kcm.controllers.validatingadmissionpolicystatus import (
    MOST_KINDS,
    ValidatingAdmissionPolicyStatusController,
    check_types,
    list_kinds,
)
from kcm.reconcile.plan import UpdateStatus
from kcm.testing.views import FakeView
from tests.samples import sample

POLICIES = "validatingadmissionpolicies.admissionregistration.k8s.io"
CONTROLLER = ValidatingAdmissionPolicyStatusController()
NO_OVERLOAD = "found no matching overload for '_>_' applied to '(int, string)'"


def policy(
    *expressions: str,
    groups: tuple[str, ...] = ("apps",),
    versions: tuple[str, ...] = ("v1",),
    resources: tuple[str, ...] = ("deployments",),
    **spec: Any,
) -> ValidatingAdmissionPolicy:
    rule = {
        "operations": ["*"],
        "apiGroups": list(groups),
        "apiVersions": list(versions),
        "resources": list(resources),
    }
    made = sample(
        POLICIES,
        spec={
            "matchConstraints": {"resourceRules": [rule]},
            "validations": [{"expression": expression} for expression in expressions],
            **spec,
        },
    ).with_metadata(generation=1)
    assert isinstance(made, ValidatingAdmissionPolicy)
    return made


@pytest.mark.parametrize(
    ("expressions", "warnings"),
    [
        (["object.spec.replicas > 1"], {}),
        (["object.spec.replicas < 100", "object.spec.replicas > '1'"], {1: [NO_OVERLOAD]}),
        (
            ["object.spec.nonExistingFirst > 1", "object.spec.replicas > '1'"],
            {0: ["undefined field 'nonExistingFirst'"], 1: [NO_OVERLOAD]},
        ),
        (
            ["true", "object.spec.replicas > '1' && object.spec.nonExisting == 1"],
            {1: [NO_OVERLOAD, "undefined field 'nonExisting'"]},
        ),
        (["object.metadata.labels.app == 'a' && has(oldObject.metadata)"], {}),
        (["object.spec.template.spec.containers.all(c, c.image.startsWith('a/'))"], {}),
        (["object.spec.template.spec.containers.all(c, c.picture == '')"], {0: ["'picture'"]}),
        (["object.metadata.creationTimestamp < timestamp('2030-01-01T00:00:00Z')"], {}),
        (["object.spec > 1"], {0: ["applied to '(DeploymentSpec, int)'"]}),
        (["object.spec.strategy.rollingUpdate.maxSurge == 1"], {}),
        (["request.anything > 1 && variables.other == 'a'"], {}),
        (["authorizer.group('').resource('pods').check('get').allowed()"], {}),
    ],
)
def test_types_that_do_not_fit_are_warned_of(
    expressions: list[str], warnings: dict[int, list[str]]
) -> None:
    obj = policy(*expressions)
    [write] = CONTROLLER.reconcile(obj.key, FakeView(obj, controller=CONTROLLER)).writes
    assert isinstance(write, UpdateStatus)
    assert isinstance(write.new, ValidatingAdmissionPolicy)
    assert write.new.status.observed_generation == 1
    checking = write.new.status.type_checking
    assert checking is not None
    found = {one.field_ref: one.warning for one in checking.expression_warnings or ()}
    assert list(found) == [f"spec.validations[{index}].expression" for index in warnings]
    for index, words in warnings.items():
        text = found[f"spec.validations[{index}].expression"]
        assert text.startswith("apps/v1, Kind=Deployment: ERROR: <input>:1:")
        assert all(word in text for word in words)


def test_a_status_of_the_present_generation_stays() -> None:
    obj = policy("true").with_status(ValidatingAdmissionPolicyStatus(observed_generation=1))
    assert CONTROLLER.reconcile(obj.key, FakeView(obj, controller=CONTROLLER)).writes == []
    assert CONTROLLER.reconcile("gone", FakeView(controller=CONTROLLER)).writes == []


@pytest.mark.parametrize(
    ("names", "kinds"),
    [
        ({}, ["Deployment"]),
        ({"resources": ("replicasets", "deployments")}, ["Deployment", "ReplicaSet"]),
        ({"resources": ("*",)}, []),
        ({"resources": ("deployments/scale",)}, []),
        ({"groups": ("*",)}, []),
        ({"versions": ("*",)}, []),
        ({"groups": ("example.com",)}, []),
        ({"groups": ("", "apps"), "resources": ("pods", "deployments")}, ["Pod", "Deployment"]),
    ],
)
def test_kinds_are_those_that_rules_name(names: dict[str, Any], kinds: list[str]) -> None:
    assert [kind.kind for kind in list_kinds(policy("true", **names), BUILT_IN)] == kinds


def test_few_kinds_are_looked_at() -> None:
    plurals = (
        "pods", "nodes", "services", "secrets", "configmaps", "events", "endpoints", "namespaces",
        "podtemplates", "limitranges", "resourcequotas", "serviceaccounts",
    )  # fmt: skip
    assert len(list_kinds(policy("true", groups=("",), resources=plurals), BUILT_IN)) == MOST_KINDS


def test_several_kinds_and_messages_are_checked() -> None:
    message = {"expression": "true", "messageExpression": "object.spec.replicas + 'a'"}
    obj = policy(resources=("deployments", "replicasets"), validations=[message])
    [warning] = check_types(obj, BUILT_IN)
    assert warning.field_ref == "spec.validations[0].messageExpression"
    assert "apps/v1, Kind=Deployment" in warning.warning
    assert "apps/v1, Kind=ReplicaSet" in warning.warning


def test_parameters_have_the_types_of_their_kind() -> None:
    kind = {"apiVersion": "v1", "kind": "ConfigMap"}
    obj = policy("params.data.a == 1", "params.data.a == 'x'", paramKind=kind)
    [warning] = check_types(obj, BUILT_IN)
    assert warning.field_ref == "spec.validations[0].expression"
    assert "no matching overload for '_==_' applied to '(string, int)'" in warning.warning


def test_custom_kinds_have_the_types_of_their_schemas() -> None:
    properties = {
        "size": {"type": "integer"},
        "names": {"type": "array", "items": {"type": "string"}},
        "limits": {"type": "object", "additionalProperties": {"type": "integer"}},
        "either": {"x-kubernetes-int-or-string": True},
        "a-b": {"type": "string"},
    }
    spec = {"type": "object", "properties": properties}
    schema = {"openAPIV3Schema": {"type": "object", "properties": {"spec": spec}}}
    names = {"plural": "widgets", "kind": "Widget"}
    version = {"name": "v1", "served": True, "storage": True, "schema": schema}
    definition = sample(
        "customresourcedefinitions.apiextensions.k8s.io",
        spec={
            "group": "example.com", "scope": "Namespaced", "names": names, "versions": [version],
        },
        status={
            "acceptedNames": names, "conditions": [{"type": "Established", "status": "True"}],
        },
    )  # fmt: skip
    scheme = Scheme()
    register(scheme, definition)
    obj = policy(
        "object.spec.size > 'a'",
        "object.spec.names.exists(n, n == 'a') && object.spec.limits.a > 1",
        "object.spec.either == 1 || object.spec.either == 'a'",
        "object.spec.a__dash__b == 'c' && object.metadata.name == 'd'",
        "object.spec.limits.a > 'b'",
        groups=("example.com",),
        resources=("widgets",),
    )
    fields = [warning.field_ref for warning in check_types(obj, scheme)]
    assert fields == ["spec.validations[0].expression", "spec.validations[4].expression"]
