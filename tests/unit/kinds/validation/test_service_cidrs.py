"""Tests the rules of ServiceCIDRs, IPAddresses and RuntimeClasses, after upstream's tables.

Source: pkg/apis/networking/validation/validation_test.go (TestValidateServiceCIDR,
TestValidateIPAddress) and pkg/apis/node/validation/validation_test.go, Kubernetes 1.33.
"""

from __future__ import annotations

from typing import Any

import pytest

from tests.samples import sample, with_spec
from tests.unit.kinds.validation.outcomes import validate_changed, validate_new, validate_new_spec

CIDRS, IPS = "servicecidrs.networking.k8s.io", "ipaddresses.networking.k8s.io"
CLASSES = "runtimeclasses.node.k8s.io"
PARENT = {"resource": "services", "namespace": "default", "name": "web"}


@pytest.mark.parametrize(
    ("cidrs", "fault"),
    [
        (["10.1.0.0/24"], ""),
        (["fd00::/112", "10.1.0.0/24"], ""),
        ([], "spec.cidrs: Required value: at least one CIDR required"),
        (["10.1.0.0/24", "fd00::/112", "10.2.0.0/24"], "may only hold up to 2 values"),
        (["10.1.0.0/24", "10.2.0.0/24"], "may specify no more than one IP for each IP family"),
        (["10.1.0.0/24", "nonsense"], "must be a valid CIDR value"),
        (["10.1.0.0"], "spec.cidrs[0]: Invalid value"),
    ],
)
def test_a_service_cidr_has_one_range_of_each_family(cidrs: list[str], fault: str) -> None:
    found = validate_new_spec(CIDRS, cidrs=cidrs)
    assert bool(found) == bool(fault)
    assert all(fault in text for text in found)


@pytest.mark.parametrize(
    ("before", "after", "fine"),
    [
        (["10.1.0.0/24"], ["10.1.0.0/24"], True),
        (["10.1.0.0/24"], ["10.1.0.0/24", "fd00::/112"], True),
        (["10.1.0.0/24"], ["10.2.0.0/24"], False),
        (["10.1.0.0/24"], ["10.2.0.0/24", "fd00::/112"], False),
        (["10.1.0.0/24", "fd00::/112"], ["10.1.0.0/24"], False),
    ],
)
def test_a_range_can_only_be_added(before: list[str], after: list[str], fine: bool) -> None:
    changed = validate_changed(with_spec(CIDRS, cidrs=after), with_spec(CIDRS, cidrs=before))
    assert (changed == []) == fine


@pytest.mark.parametrize(
    ("name", "fine"),
    [
        ("192.168.1.5", True),
        ("2001:db8::1", True),
        ("2001:DB8::1", False),
        ("2001:db8:0:0::1", False),
        ("192.168.1.05", False),
        ("web", False),
    ],
)
def test_the_name_of_an_address_is_canonical(name: str, fine: bool) -> None:
    assert (validate_new(IPS, metadata={"name": name}) == []) == fine


@pytest.mark.parametrize(
    ("parent", "fault"),
    [
        (None, "spec.parentRef: Required value"),
        ({"name": "web"}, "spec.parentRef.resource: Required value"),
        ({"resource": "services"}, "spec.parentRef.name: Required value"),
        (PARENT | {"group": "-"}, "spec.parentRef.group: Invalid value"),
        (PARENT | {"name": "a/b"}, "spec.parentRef.name: Invalid value"),
        (PARENT | {"namespace": "a/b"}, "spec.parentRef.namespace: Invalid value"),
    ],
)
def test_an_address_has_a_parent(parent: dict[str, Any] | None, fault: str) -> None:
    (text,) = validate_new_spec(IPS, parentRef=parent)
    assert fault in text


def test_the_parent_of_an_address_cannot_be_changed() -> None:
    (text,) = validate_changed(with_spec(IPS, parentRef=PARENT | {"name": "b"}), sample(IPS))
    assert "spec.parentRef: Invalid value" in text
    assert text.endswith("field is immutable")


@pytest.mark.parametrize(
    ("changes", "fault"),
    [
        ({}, ""),
        ({"handler": ""}, "handler: Invalid value"),
        ({"handler": "&!@#"}, "handler: Invalid value"),
        ({"overhead": {"podFixed": {"memory": "-1"}}}, "overhead.limits[memory]: Invalid value"),
        ({"scheduling": {"nodeSelector": {"x y": "z"}}}, "scheduling.nodeSelector: Invalid value"),
        (
            {"scheduling": {"tolerations": [{"key": "a", "operator": "Is"}]}},
            "scheduling.tolerations[0].operator: Unsupported value",
        ),
    ],
)
def test_a_runtime_class_names_a_handler(changes: dict[str, Any], fault: str) -> None:
    found = validate_new(CLASSES, **changes)
    assert bool(found) == bool(fault)
    assert all(fault in text for text in found)


def test_the_handler_of_a_runtime_class_cannot_be_changed() -> None:
    (text,) = validate_changed(sample(CLASSES, handler="other"), sample(CLASSES))
    assert text.startswith("handler: Invalid value")
