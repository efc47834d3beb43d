"""The admission plugin TaintNodesByCondition: a new node is not ready until somebody says so.

Without the taint, a pod could be bound to a node before the node lifecycle controller has seen it.
That controller removes the taint once the node reports that it is ready. Nodes that kcm simulates
are ready when they are written, and do not come through the API server.

Source: plugin/pkg/admission/nodetaint/admission.go, Kubernetes 1.36.
"""

from __future__ import annotations

from kcm.api.admissionregistration_v1 import CREATE
from kcm.api.core_v1 import Node, Taint
from kcm.store.admission.plugin import Plugin, Write

_NOT_READY = Taint(key="node.kubernetes.io/not-ready", effect="NoSchedule")


class TaintNodesByCondition(Plugin):
    """Adds the taint `node.kubernetes.io/not-ready:NoSchedule` to new nodes."""

    name = "TaintNodesByCondition"

    def handles(self, resource: str, subresource: str, operation: str) -> bool:
        return (resource, subresource, operation) == (Node.resource.name, "", CREATE)

    def admit(self, write: Write) -> Write:
        node = write.new_as(Node)
        taints = node.spec.taints or []
        if any((one.key, one.effect) == (_NOT_READY.key, _NOT_READY.effect) for one in taints):
            return write
        return write.with_new(node.with_spec(node.spec.replace(taints=[*taints, _NOT_READY])))
