"""Nodes."""

import pytest

from kcm.api.core_v1 import NodeAddress, Taint
from kcm.apimachinery.quantity import Quantity
from kcm.kinds.validation import validate_create, validate_status_update, validate_update
from kcm.testing import builders
from tests.unit.kinds.validation.outcomes import texts

TAINT = Taint(key="k", value="v", effect="NoSchedule")


@pytest.mark.parametrize(
    ("taints", "beginning"),
    [
        ([Taint(key="k")], "metadata.taints[0].effect: Required value"),
        (
            [Taint(key="k", effect="x")],
            'metadata.taints[0].effect: Unsupported value: "x": supported values: "NoSchedule", '
            '"PreferNoSchedule", "NoExecute"',
        ),
        ([TAINT.replace(key="a b")], 'metadata.taints[0].key: Invalid value: "a b": name part'),
        ([TAINT.replace(value="a b")], 'metadata.taints[0].value: Invalid value: "a b": a valid'),
        ([TAINT, TAINT.replace(value="w")], "metadata.taints[1]: Duplicate value: "),
    ],
)
def test_taints_are_checked(taints: list[Taint], beginning: str) -> None:
    [message] = texts(validate_create(builders.node(taints=taints)))
    assert message.startswith(beginning)


def test_one_key_may_have_several_effects() -> None:
    taints = [TAINT, TAINT.replace(effect="NoExecute")]
    assert validate_create(builders.node(taints=taints)) == []


@pytest.mark.parametrize("cidr", ["x", "10.0.0.0", "10.0.0.0/33"])
def test_pod_ranges_are_ranges(cidr: str) -> None:
    expected = [
        f'spec.podCIDRs[0]: Invalid value: "{cidr}": must be a valid CIDR value, '
        "(e.g. 10.9.8.0/24 or 2001:db8::/64)"
    ]
    assert texts(validate_create(builders.node(pod_cidrs=[cidr]))) == expected
    assert texts(validate_create(builders.node(pod_cidr=cidr))) == expected


@pytest.mark.parametrize(
    "ranges",
    [
        ["10.0.0.0/24", "10.0.1.0/24"],
        ["10.0.0.0/24", "10.0.0.0/24"],
        ["fd00::/64", "10.0.0.0/24", "fd01::/64"],
    ],
)
def test_there_is_one_pod_range_for_each_family(ranges: list[str]) -> None:
    [message] = texts(validate_create(builders.node(pod_cidrs=ranges)))
    assert message.startswith("spec.podCIDRs: Invalid value: [")
    assert message.endswith(": may specify no more than one CIDR for each IP family")
    assert validate_create(builders.node(pod_cidrs=["10.0.0.0/24", "fd00::/64"])) == []


def test_capacity_is_not_negative() -> None:
    node = builders.node(status={"capacity": {"cpu": Quantity("-1")}})
    assert 'status.capacity[cpu]: Invalid value: "-1": must be greater than or equal to 0' in texts(
        validate_create(node)
    )


def test_taints_and_schedulability_may_change() -> None:
    assert validate_update(builders.node(taints=[TAINT], unschedulable=True), builders.node()) == []


def test_pod_range_and_provider_may_be_set_once() -> None:
    bare = builders.node()
    full = builders.node(pod_cidrs=["10.0.0.0/24"], provider_id="a://b")
    other = builders.node(pod_cidrs=["10.0.1.0/24"], provider_id="c://d")
    assert validate_update(full, bare) == []
    assert texts(validate_update(other, full)) == [
        'spec.podCIDRs: Forbidden: node updates may not change podCIDR except from "" to valid',
        "spec.providerID: Forbidden: node updates may not change providerID except from "
        '"" to valid',
    ]


def test_nothing_else_of_the_spec_may_change() -> None:
    assert texts(validate_update(builders.node(external_id="x"), builders.node())) == [
        "spec: Forbidden: node updates may only change labels, taints, or capacity"
    ]


def test_no_address_is_reported_twice() -> None:
    address = NodeAddress(type="InternalIP", address="10.0.0.1")
    node = builders.node(status={"addresses": [address, address]})
    [message] = texts(validate_status_update(node, builders.node()))
    assert message.startswith("status.addresses[1]: Duplicate value: ")


@pytest.mark.parametrize(
    ("features", "fault"),
    [
        (["A", "B/c"], ""),
        (["A", "A"], 'status.declaredFeatures[1]: Duplicate value: "A"'),
        (["B", "A"], "status.declaredFeatures[1]: Invalid value"),
        (["a"], "status.declaredFeatures[0]: Invalid value"),
        (["A" * 254], "status.declaredFeatures[0]: Invalid value"),
    ],
)
def test_declared_features_are_sorted_names(features: list[str], fault: str) -> None:
    node = builders.node()
    node = node.with_status(node.status.replace(declared_features=features))
    for found in (texts(validate_create(node)), texts(validate_status_update(node, node))):
        assert [text.startswith(fault) for text in found] == ([True] if fault else [])


@pytest.mark.parametrize(
    ("text", "fault"),
    [
        ("", ""),
        ('{"preferAvoidPods": [{"podSignature": {"podController": {"controller": true}}}]}', ""),
        ('{"preferAvoidPods": [{}]}', "[0].PodSignature: Required value"),
        (
            '{"preferAvoidPods": [{"podSignature": {"podController": {"kind": "x"}}}]}',
            "[0].PodSignature.PodController.Controller: Invalid value: false",
        ),
        ("{", "AvoidPods: Invalid value"),
        ('{"preferAvoidPods": 5}', "AvoidPods: Invalid value"),
        ('{"preferAvoidPods": [{"podSignature": {"podController": "x"}}]}', "AvoidPods: Invalid"),
        ("[" * 100_000, "AvoidPods: Invalid value"),
    ],
)
def test_pods_that_a_node_avoids_have_a_controller(text: str, fault: str) -> None:
    annotations = {"scheduler.alpha.kubernetes.io/preferAvoidPods": text}
    found = texts(validate_create(builders.node(metadata={"annotations": annotations})))
    assert [fault in one for one in found] == ([True] if fault else [])
