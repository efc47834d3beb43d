"""New nodes are not ready, after TestAdmitNodeTaint of plugin/pkg/admission/nodetaint, 1.36."""

from __future__ import annotations

import pytest

from kcm.api.core_v1 import Node, Taint
from kcm.apiserver.admission.node_taint import TaintNodesByCondition
from kcm.store.admission.plugin import Write
from kcm.testing import builders

NOT_READY = Taint(key="node.kubernetes.io/not-ready", effect="NoSchedule")
OWN = Taint(key="dedicated", value="db", effect="NoSchedule")
EVICTS = Taint(key="node.kubernetes.io/not-ready", effect="NoExecute")


@pytest.mark.parametrize(
    ("taints", "stored"),
    [
        ([], [NOT_READY]),
        ([OWN], [OWN, NOT_READY]),
        ([EVICTS], [EVICTS, NOT_READY]),
        ([NOT_READY, OWN], [NOT_READY, OWN]),
    ],
)
def test_a_new_node_has_the_taint_once(taints: list[Taint], stored: list[Taint]) -> None:
    node = builders.node("n1", taints=taints)
    plugin = TaintNodesByCondition()
    admitted = plugin.admit(Write("CREATE", Node.resource, node)).new
    assert isinstance(admitted, Node)
    assert admitted.spec.taints == stored


def test_only_creates_of_nodes_themselves_are_its_own() -> None:
    plugin = TaintNodesByCondition()
    assert plugin.handles("nodes", "", "CREATE")
    for other in (("nodes", "status", "CREATE"), ("nodes", "", "UPDATE"), ("pods", "", "CREATE")):
        assert not plugin.handles(*other)
