"""Decisions of policies over watch caches that the test fills.

The cases follow TestParamRef, TestAuditAnnotations, TestAuditValidationAction and TestWarnAction of
staging/src/k8s.io/apiserver/pkg/admission/plugin/policy/validating/{admission,validator}_test.go,
Kubernetes 1.33.
"""

from __future__ import annotations

import json
from typing import Any

import pytest
from prometheus_client import CollectorRegistry

from kcm import errors
from kcm.api.admissionregistration_v1 import CREATE
from kcm.api.core_v1 import ConfigMap, Secret
from kcm.api.scheme import BUILT_IN
from kcm.apiextensions.cel import policies as cel_policies
from kcm.apimachinery.meta_v1 import KubeObject, ObjectMeta
from kcm.apiserver.admission.attributes import WriteAttributes
from kcm.apiserver.admission.policies.admission import PolicyChecks
from kcm.apiserver.admission.policies.index import ValidatingPolicyIndex
from kcm.apiserver.admission.policies.metrics import PolicyMetrics
from kcm.apiserver.auth.attributes import ADMIN
from kcm.apiserver.auth.authorizer import AlwaysAllow, Caller
from kcm.apiserver.http_errors import PolicyDenied
from kcm.apiserver.request import Remarks
from tests.samples import sample
from tests.unit.apiserver.auth.caches import FakeHub

GROUP = "admissionregistration.k8s.io"
RULE = {"apiGroups": [""], "apiVersions": ["v1"], "operations": ["*"], "resources": ["configmaps"]}
RESOURCE = ConfigMap.resource
WRITTEN = ConfigMap(metadata=ObjectMeta(name="new", namespace="default"), data={"a": "x"})


def policy(name: str = "p", **spec: Any) -> KubeObject:
    body = {"matchConstraints": {"resourceRules": [RULE]}, **spec}
    made: KubeObject = sample(
        f"validatingadmissionpolicies.{GROUP}", metadata={"name": name}, spec=body
    )
    return made


def binding(
    name: str = "b", of: str = "p", actions: tuple[str, ...] = ("Deny",), **spec: Any
) -> Any:
    body = {"policyName": of, "validationActions": list(actions), **spec}
    return sample(f"validatingadmissionpolicybindings.{GROUP}", metadata={"name": name}, spec=body)


def check(*objects: KubeObject, new: ConfigMap = WRITTEN) -> Remarks:
    return run(make_admission(*objects), new)


class Policies:
    """The index of policies, and their checks."""

    def __init__(self, hub: FakeHub) -> None:
        self.find = ValidatingPolicyIndex(hub).find
        self.check = PolicyChecks(hub, PolicyMetrics(CollectorRegistry())).check


def make_admission(*objects: KubeObject) -> Policies:
    return Policies(FakeHub(*objects))


def run(admission: Policies, new: ConfigMap) -> Remarks:
    write = WriteAttributes(
        CREATE, RESOURCE, "", new.namespace or "", new.name, new, None, ADMIN
    )  # fmt: skip
    remarks = Remarks()
    policies = admission.find(RESOURCE, "", CREATE)
    admission.check(policies, write, Caller(ADMIN, AlwaysAllow()), remarks)
    return remarks


def validations(expression: str, **fields: str) -> dict[str, Any]:
    return {"validations": [{"expression": expression, **fields}]}


def test_annotations_of_the_audit_log_have_the_values_of_all_bindings() -> None:
    limits = [
        ConfigMap(metadata=ObjectMeta(name=name, namespace="default"), data={"most": most})
        for name, most in (("one", "1"), ("two", "2"))
    ]
    reference = {"parameterNotFoundAction": "Deny"}
    remarks = check(
        policy(
            paramKind={"apiVersion": "v1", "kind": "ConfigMap"},
            auditAnnotations=[
                {"key": "most", "valueExpression": "params.data.most"},
                {"key": "name", "valueExpression": "'  ' + object.metadata.name"},
                {"key": "none", "valueExpression": "null"},
                {"key": "empty", "valueExpression": "' '"},
            ],
        ),
        binding("b1", paramRef={"name": "one", **reference}),
        binding("b2", paramRef={"name": "two", **reference}),
        *limits,
    )
    assert remarks.annotations == {"p/most": "1, 2", "p/name": "new"}


def test_an_annotation_that_fails_denies_unless_failures_are_ignored() -> None:
    annotations = [{"key": "a", "valueExpression": "string(object.nothing)"}]
    with pytest.raises(PolicyDenied, match="resulted in error"):
        check(policy(auditAnnotations=annotations), binding())
    ignoring = policy(auditAnnotations=annotations, failurePolicy="Ignore")
    assert check(ignoring, binding()).annotations == {}


def test_failures_are_audited_and_warned_of() -> None:
    remarks = check(
        policy(**validations("false", message="no")),
        policy("second", **validations("false", message="not told")),
        binding(actions=("Audit", "Warn")),
        binding("other", "second", actions=("Audit",)),
    )
    found = json.loads(remarks.annotations["validation.policy.admission.k8s.io/validation_failure"])
    assert found == [
        {
            "message": "no", "policy": "p", "binding": "b", "expressionIndex": 0,
            "validationActions": ["Audit", "Warn"],
        }
    ]  # fmt: skip
    assert remarks.warnings == [
        "Validation failed for ValidatingAdmissionPolicy 'p' with binding 'b': no"
    ]


def test_the_first_denial_is_told_and_all_policies_are_evaluated() -> None:
    with pytest.raises(PolicyDenied, match="Policy 'a' with binding 'b1' denied request: first"):
        check(
            policy("a", **validations("false", message="first")),
            policy("z", **validations("false", message="second")),
            binding("b1", "a"),
            binding("b2", "z"),
        )


def test_nothing_is_found_for_what_no_policy_is_about() -> None:
    admission = make_admission(policy(**validations("false")), binding())
    assert len(admission.find(RESOURCE, "", CREATE)) == 1
    assert admission.find(Secret.resource, "", CREATE) == []
    assert admission.find(RESOURCE, "status", CREATE) == []
    policies = BUILT_IN.by_name(f"validatingadmissionpolicies.{GROUP}")
    assert admission.find(policies, "", CREATE) == ()


def test_changes_of_policies_are_seen() -> None:
    hub = FakeHub()
    admission = Policies(hub)
    assert admission.find(RESOURCE, "", CREATE) == ()
    hub.fill(policy(**validations("false")), binding())
    assert len(admission.find(RESOURCE, "", CREATE)) == 1
    hub.fill(policy(**validations("false")))
    assert admission.find(RESOURCE, "", CREATE) == ()


def test_nothing_is_written_before_the_policies_are_known() -> None:
    admission = Policies(FakeHub(filled=False))
    with pytest.raises(errors.StoreUnavailable, match="policies are not loaded"):
        admission.find(RESOURCE, "", CREATE)


WRONG = {"matchExpressions": [{"key": "a", "operator": "Bogus"}]}


def test_wrong_selectors_cost_the_requests_of_their_policy_only() -> None:
    constraints = {"resourceRules": [RULE], "namespaceSelector": WRONG}
    wrong = policy("wrong", **validations("true"), matchConstraints=constraints)
    with pytest.raises(PolicyDenied, match=r"failed to configure policy: .*Bogus"):
        check(wrong, binding(of="wrong"))
    bound = binding(matchResources={"objectSelector": WRONG})
    with pytest.raises(PolicyDenied, match=r"failed to configure binding: .*Bogus"):
        check(policy(**validations("true")), bound)
    reference = {"selector": WRONG, "parameterNotFoundAction": "Deny"}
    kind = {"apiVersion": "v1", "kind": "ConfigMap"}
    with pytest.raises(PolicyDenied, match=r"failed to configure binding: .*Bogus"):
        check(policy(**validations("true"), paramKind=kind), binding(paramRef=reference))
    ignored = policy(**validations("true"), matchConstraints=constraints, failurePolicy="Ignore")
    assert check(ignored, binding()) == Remarks()


def test_policies_that_nobody_could_have_written_refuse_and_do_no_harm() -> None:
    for text in ("(", "x" * 200_000, "variables.a.b.c", "object.data.a"):
        with pytest.raises(PolicyDenied):
            check(policy(**validations(text)), binding())


def test_all_policies_of_a_request_have_one_budget(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(cel_policies, "REQUEST_BUDGET", 0.0)
    with pytest.raises(PolicyDenied, match="running out of cost budget"):
        check(policy(**validations("true")), binding())


def test_a_policy_has_one_budget_for_all_its_parameters(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(cel_policies, "BUDGET", 0.005)
    limits = [
        ConfigMap(metadata=ObjectMeta(name=f"l{n}", namespace="default"), data={"x": "y" * 100_000})
        for n in range(300)
    ]
    reference = {"selector": {}, "parameterNotFoundAction": "Deny"}
    kind = {"apiVersion": "v1", "kind": "ConfigMap"}
    limited = policy(**validations("params == params"), paramKind=kind)
    bindings = [binding(f"b{n}", paramRef=reference) for n in range(5)]
    with pytest.raises(PolicyDenied, match="running out of cost budget"):
        check(limited, *bindings, *limits)


def test_rules_that_name_objects_are_asked_about_each_object() -> None:
    rules = [{**RULE, "resourceNames": ["other"]}]
    constraints = {"matchConstraints": {"resourceRules": rules}}
    admission = make_admission(policy(**validations("false") | constraints), binding())
    assert [refuses(admission, name) for name in ("other", "new", "other")] == [True, False, True]
    excluded = {"matchConstraints": {"resourceRules": [RULE], "excludeResourceRules": rules}}
    admission = make_admission(policy(**validations("false") | excluded), binding())
    assert [refuses(admission, name) for name in ("other", "new", "other")] == [False, True, False]


def refuses(admission: Policies, name: str) -> bool:
    """Reports whether the creation of a ConfigMap with this name is refused."""
    try:
        run(admission, WRITTEN.with_metadata(name=name))
    except PolicyDenied:
        return True
    return False
