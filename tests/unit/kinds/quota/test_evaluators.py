"""The usage of services, claims and all other objects.

Cases after upstream's pkg/quota/v1/evaluator/core/{services,persistent_volume_claims}_test.go.
"""

from __future__ import annotations

from typing import Any

import pytest

from kcm.api import scheme
from kcm.api.core_v1 import ScopedResourceSelectorRequirement
from kcm.api.scheme import BUILT_IN
from kcm.apimachinery.meta_v1 import KubeObject
from kcm.kinds.quota import evaluator_of, is_tracked, used_by
from kcm.testing.views import NOW
from tests.samples import sample, with_spec
from tests.unit.kinds.quota.test_charging import CPU, quota
from tests.unit.kinds.quota.test_pods import pod_of

PORTS = [{"name": "a", "port": 80}, {"name": "b", "port": 81, "nodePort": 30001}]
CLASS = "gold.storageclass.storage.k8s.io/"


def show_usage(obj: Any) -> dict[str, str]:
    amounts = evaluator_of(obj.resource).usage(obj, NOW)
    return {name: str(amount) for name, amount in amounts.items()}


@pytest.mark.parametrize(
    ("spec", "balancers", "ports"),
    [
        ({}, "0", "0"),
        ({"type": "ClusterIP"}, "0", "0"),
        ({"type": "ExternalName"}, "0", "0"),
        ({"type": "NodePort"}, "0", "2"),
        ({"type": "LoadBalancer"}, "1", "2"),
        ({"type": "LoadBalancer", "allocateLoadBalancerNodePorts": False}, "1", "1"),
    ],
)
def test_services(spec: dict[str, Any], balancers: str, ports: str) -> None:
    assert show_usage(with_spec("services", ports=PORTS, **spec)) == {
        "count/services": "1",
        "services": "1",
        "services.loadbalancers": balancers,
        "services.nodeports": ports,
    }


def claim(**more: Any) -> Any:
    return sample("persistentvolumeclaims", **more)


@pytest.mark.parametrize(
    ("spec", "expected"),
    [
        (claim(), {"requests.storage": "1Gi"}),
        (
            with_spec("persistentvolumeclaims", storageClassName="gold"),
            {
                "requests.storage": "1Gi",
                f"{CLASS}requests.storage": "1Gi",
                f"{CLASS}persistentvolumeclaims": "1",
            },
        ),
        (claim(status={"allocatedResources": {"storage": "2Gi"}}), {"requests.storage": "2Gi"}),
        (
            with_spec("persistentvolumeclaims", resources={"requests": {"storage": "1500m"}}),
            {"requests.storage": "2"},
        ),
    ],
)
def test_claims(spec: Any, expected: dict[str, str]) -> None:
    counted = {"count/persistentvolumeclaims": "1", "persistentvolumeclaims": "1"}
    assert show_usage(spec) == counted | expected


@pytest.mark.parametrize(
    ("name", "expected"),
    [
        ("configmaps", {"count/configmaps", "configmaps"}),
        ("secrets", {"count/secrets", "secrets"}),
        ("resourcequotas", {"count/resourcequotas", "resourcequotas"}),
        ("replicationcontrollers", {"count/replicationcontrollers", "replicationcontrollers"}),
        ("serviceaccounts", {"count/serviceaccounts"}),
        ("deployments.apps", {"count/deployments.apps"}),
    ],
)
def test_of_all_others_the_number_counts(name: str, expected: set[str]) -> None:
    evaluator = evaluator_of(BUILT_IN.by_name(name))
    assert evaluator.usage(sample(name), NOW).keys() == expected
    assert all(map(evaluator.tracks, expected))
    assert not evaluator.tracks("pods")


@pytest.mark.parametrize(
    ("name", "expected"), [("pods", True), ("events", False), ("nodes", False)]
)
def test_what_quotas_know(name: str, expected: bool) -> None:
    assert is_tracked(BUILT_IN.by_name(name)) is expected


def test_all_objects_of_the_namespace_are_added_up() -> None:
    asked = []
    objects = {"pods": [pod_of(CPU), pod_of(CPU)], "configmaps": [sample("configmaps")]}

    def list_(kind: scheme.Resource) -> list[KubeObject]:
        asked.append(kind.name)
        return list(objects.get(kind.name, []))

    hard = {"requests.cpu": "9", "pods": "9", "count/configmaps": "1", "count/x.example.com": "1"}
    amounts = used_by(quota({**hard, "services": "1"}), BUILT_IN.resources(), list_, NOW)
    assert {name: str(amount) for name, amount in amounts.items()} == {
        "requests.cpu": "2",
        "pods": "2",
        "count/configmaps": "1",
        "services": "0",
    }
    assert sorted(asked) == ["configmaps", "pods", "services"]


# TestPersistentVolumeClaimEvaluatorMatchingScopes
@pytest.mark.parametrize(
    ("operator", "values", "chosen", "current", "expected"),
    [
        ("Exists", None, "gold", None, True),
        ("Exists", None, None, None, False),
        ("DoesNotExist", None, None, None, True),
        ("In", ["gold"], "silver", "gold", True),
        ("In", ["gold"], "silver", None, False),
        ("NotIn", ["gold"], "silver", None, True),
    ],
)
def test_claims_are_in_the_scope_of_each_class_of_attributes_that_they_have(
    operator: str, values: list[str] | None, chosen: str | None, current: str | None, expected: bool
) -> None:
    claim = with_spec("persistentvolumeclaims", volumeAttributesClassName=chosen)
    status = claim.status.replace(current_volume_attributes_class_name=current)
    wanted = ScopedResourceSelectorRequirement(
        scope_name="VolumeAttributesClass", operator=operator, values=values
    )
    evaluator = evaluator_of(claim.resource)
    assert evaluator.in_scope(claim.with_status(status), wanted) is expected
    priority = wanted.replace(scope_name="PriorityClass")
    assert not evaluator.in_scope(claim.with_status(status), priority)
