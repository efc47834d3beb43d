"""What NodeRestriction lets a node write to Nodes, after upstream's admission_test.go."""

from __future__ import annotations

import pytest

from kcm.api.core_v1 import (
    Node,
)
from kcm.api.core_v1.nodes import ConfigMapNodeConfigSource, NodeConfigSource
from kcm.apimachinery.meta_v1 import OwnerReference
from kcm.testing.builders import node as build_node
from tests.unit.apiserver.auth.node.node_writes import (
    NODE,
    check,
    tainted,
)

ALLOWED_LABELS = (
    "foo", "example.com/foo", "kubernetes.io/hostname", "topology.kubernetes.io/zone",
    "topology.kubernetes.io/region", "failure-domain.beta.kubernetes.io/zone",
    "failure-domain.beta.kubernetes.io/region", "beta.kubernetes.io/instance-type",
    "node.kubernetes.io/instance-type", "beta.kubernetes.io/os", "beta.kubernetes.io/arch",
    "kubernetes.io/os", "kubernetes.io/arch", "kubelet.kubernetes.io/foo",
    "foo.kubelet.kubernetes.io/foo", "node.kubernetes.io/foo", "foo.node.kubernetes.io/foo",
)  # fmt: skip
FORBIDDEN_LABELS = (
    "foo.node-restriction.kubernetes.io/foo", "node-restriction.kubernetes.io/foo",
    "other.k8s.io/foo", "other.kubernetes.io/foo",
)  # fmt: skip
LISTED = ", ".join(FORBIDDEN_LABELS)
OWNED = NODE.with_metadata(
    owner_references=[OwnerReference(api_version="v1", kind="Namespace", name="gone", uid="1")]
)


def labelled(*labels: str, value: str = "value") -> Node:
    return NODE.with_metadata(labels=dict.fromkeys(labels, value))


def configured(name: str) -> Node:
    source = NodeConfigSource(config_map=ConfigMapNodeConfigSource(name=name, namespace="bar"))
    return NODE.with_spec(NODE.spec.replace(config_source=source))


@pytest.mark.parametrize(
    ("new", "why"),
    [
        (NODE, ""),
        (tainted("A"), ""),
        (labelled(*ALLOWED_LABELS), ""),
        (
            labelled(*FORBIDDEN_LABELS),
            f'node "mynode" is not allowed to set the following labels: {LISTED}',
        ),
        (configured("foo"), "is not allowed to create pods with a non-nil configSource"),
        (
            build_node("othernode"),
            'nodes "othernode" is forbidden: node "mynode" is not allowed to modify node '
            '"othernode"',
        ),
    ],
    ids=["my node", "with taints", "with labels", "with forbidden labels", "configSource", "other"],
)
def test_create_of_a_node(new: Node, why: str) -> None:
    found = check("CREATE", new)
    assert (why in found) if why else not found


MODIFY = f"is not allowed to modify labels: {LISTED}"
CONFIG = "update configSource to a new non-nil configSource"


@pytest.mark.parametrize(
    ("new", "old", "why"),
    [
        (NODE, NODE, ""),
        (configured("foo"), NODE, CONFIG),
        (configured("qux"), configured("foo"), CONFIG),
        (configured("foo"), configured("foo"), ""),
        (NODE, configured("foo"), ""),
        (tainted("A"), tainted("A"), ""),
        (labelled(*ALLOWED_LABELS), NODE, ""),
        (NODE, labelled(*ALLOWED_LABELS), ""),
        (labelled(*ALLOWED_LABELS, value="b"), labelled(*ALLOWED_LABELS, value="a"), ""),
        (labelled(*ALLOWED_LABELS, *FORBIDDEN_LABELS), labelled(*FORBIDDEN_LABELS), ""),
        (tainted("A"), NODE, "is not allowed to modify taints"),
        (NODE, tainted("A"), "is not allowed to modify taints"),
        (tainted("A"), tainted("B"), "is not allowed to modify taints"),
        (labelled(*FORBIDDEN_LABELS), NODE, MODIFY),
        (NODE, labelled(*FORBIDDEN_LABELS), MODIFY),
        (labelled(*FORBIDDEN_LABELS, value="n"), labelled(*FORBIDDEN_LABELS, value="o"), MODIFY),
        (OWNED, OWNED, ""),
        (OWNED, NODE, "is not allowed to modify ownerReferences"),
        (NODE, OWNED, "is not allowed to modify ownerReferences"),
        (build_node("othernode"), build_node("othernode"), "is not allowed to modify node"),
    ],
)
def test_update_of_a_node(new: Node, old: Node, why: str) -> None:
    for subresource in ("", "status"):
        found = check("UPDATE", new, old, subresource=subresource)
        assert (why in found) if why else not found


def test_delete_of_a_node() -> None:
    assert not check("DELETE", NODE)
