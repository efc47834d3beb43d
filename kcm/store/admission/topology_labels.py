"""The admission plugin PodTopologyLabels: a pod has the labels for zone and region of its node.

kcm's own scheduler, which writes to the store itself, gives them with the binding.

Source: plugin/pkg/admission/podtopologylabels/admission.go, Kubernetes 1.36.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import replace
from typing import Any

from kcm.api.admissionregistration_v1 import CREATE
from kcm.api.core_v1 import Node, Pod
from kcm.store.admission.plugin import Plugin, Write
from kcm.store.reader import StoreReader
from kcm.store.strategies.pod_binding import choose_topology_labels

_BINDING = "binding"


class PodTopologyLabels(Plugin):
    """Labels pods that are created on a node, and bindings, from which a pod takes its labels."""

    name = "PodTopologyLabels"

    def __init__(self, reader: StoreReader) -> None:
        self._reader = reader

    def handles(self, resource: str, subresource: str, operation: str) -> bool:
        return (
            resource == Pod.resource.name and subresource in ("", _BINDING) and operation == CREATE
        )

    def admit(self, write: Write) -> Write:
        """Raises: StoreUnavailable."""
        if write.subresource == _BINDING:
            return self._admit_binding(write)
        pod = write.new_as(Pod)
        added = self._read_labels(pod.spec.node_name)
        return write.with_new(pod.with_metadata(labels={**pod.labels, **added})) if added else write

    def _admit_binding(self, write: Write) -> Write:
        sent = write.sent or {}
        target, metadata = _read_map(sent, "target"), _read_map(sent, "metadata")
        added = self._read_labels(target.get("name")) if target.get("kind") == "Node" else {}
        if not added:
            return write
        labels = {**_read_map(metadata, "labels"), **added}
        return replace(write, sent={**sent, "metadata": {**metadata, "labels": labels}})

    def _read_labels(self, name: object) -> Mapping[str, str]:
        node = self._reader.find(Node.resource, name) if name and isinstance(name, str) else None
        return choose_topology_labels(node.labels) if node is not None else {}


def _read_map(sent: Mapping[str, Any], name: str) -> Mapping[str, Any]:
    """Returns a part of a Binding, which a webhook may have made something else."""
    value = sent.get(name)
    return value if isinstance(value, Mapping) else {}
