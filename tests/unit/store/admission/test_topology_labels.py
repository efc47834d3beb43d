"""After plugin/pkg/admission/podtopologylabels/admission_test.go, Kubernetes 1.36."""

from __future__ import annotations

from typing import Any, cast

import pytest

from kcm.api.core_v1 import Pod
from kcm.store.admission.plugin import Write
from kcm.store.admission.topology_labels import PodTopologyLabels
from kcm.store.reader import StoreReader
from kcm.testing import builders
from tests.unit.store.admission.test_service_accounts import Objects

ZONE, REGION = "topology.kubernetes.io/zone", "topology.kubernetes.io/region"


def labelled(**labels: str) -> PodTopologyLabels:
    return PodTopologyLabels(
        cast("StoreReader", Objects(builders.node("n1", labels={ZONE: "a", REGION: "r", **labels})))
    )


@pytest.mark.parametrize(
    ("node", "before", "after"),
    [
        ("n1", {"app": "web"}, {"app": "web", ZONE: "a", REGION: "r"}),
        ("n1", {ZONE: "mine"}, {ZONE: "a", REGION: "r"}),
        ("", {"app": "web"}, {"app": "web"}),
        ("gone", {}, {}),
    ],
)
def test_a_pod_that_is_created_on_a_node_has_its_topology(
    node: str, before: dict[str, str], after: dict[str, str]
) -> None:
    pod = builders.pod("p", node=node, labels=before)
    admitted = labelled(other="x").admit(Write("CREATE", Pod.resource, pod)).new
    assert admitted is not None
    assert admitted.labels == after


@pytest.mark.parametrize(
    ("sent", "labels"),
    [
        ({"target": {"kind": "Node", "name": "n1"}}, {ZONE: "a", REGION: "r"}),
        (
            {"metadata": {"labels": {"app": "b"}}, "target": {"kind": "Node", "name": "n1"}},
            {"app": "b", ZONE: "a", REGION: "r"},
        ),
        ({"target": {"kind": "Node", "name": "gone"}}, None),
        ({"target": {"kind": "Pod", "name": "n1"}}, None),
        ({"target": [1]}, None),
        ({"target": {"kind": "Node", "name": ["n1"]}}, None),
        ({}, None),
    ],
)
def test_a_binding_has_the_topology_of_its_node(
    sent: dict[str, Any], labels: dict[str, str] | None
) -> None:
    write = labelled().admit(Write("CREATE", Pod.resource, subresource="binding", sent=sent))
    assert ((write.sent or {}).get("metadata") or {}).get("labels") == labels
