"""Whether an object may be stored: upstream's rules, one function per kind and verb.

Guarantees: rules only look; an object that passes decodes, and its errors read
as upstream's do (`spec.replicas: Invalid value: -1: must be greater than or
equal to 0`). Expects defaulted objects (see `kcm.api.defaults`). The next kind
is one line in `_RULES`; a kind without a line gets the rules for metadata.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from typing import Any

from kcm.api import names, scheme
from kcm.api.apps_v1 import ReplicaSet
from kcm.api.coordination_v1 import Lease
from kcm.api.core_v1 import Event, Namespace, Node, Pod
from kcm.api.meta_v1 import KubeObject
from kcm.api.validation import meta, nodes, pod_status, pods, replicasets, small_kinds
from kcm.api.validation.report import Faults
from kcm.errors import FieldError

__all__ = ["validate_create", "validate_status_update", "validate_update"]


def _create(obj: KubeObject) -> Faults:
    namespaced = scheme.resource_of(obj).namespaced
    return meta.metadata(obj, namespaced=namespaced, name_rule=names.subdomain_faults)


@dataclass(frozen=True)
class _Rules:
    create: Callable[[Any], Faults] = _create
    update: Callable[[Any, Any], Faults] = meta.metadata_update
    status_update: Callable[[Any, Any], Faults] = meta.metadata_update


_RULES: dict[type[KubeObject], _Rules] = {
    Pod: _Rules(pods.create, pods.update, pod_status.update),
    ReplicaSet: _Rules(replicasets.create, replicasets.update, replicasets.status_update),
    Node: _Rules(nodes.create, nodes.update, nodes.status_update),
    Namespace: _Rules(
        small_kinds.create_namespace,
        small_kinds.update_namespace,
        small_kinds.update_namespace_status,
    ),
    Lease: _Rules(small_kinds.create_lease, small_kinds.update_lease),
    Event: _Rules(small_kinds.create_event, small_kinds.update_event),
}
_GENERAL = _Rules()


def validate_create(obj: KubeObject) -> list[FieldError]:
    """What is wrong with a new object, its name generated and its defaults filled in."""
    return _RULES.get(type(obj), _GENERAL).create(obj)


def validate_update(new: KubeObject, old: KubeObject) -> list[FieldError]:
    """What is wrong with a changed object, the forbidden changes included."""
    return _RULES.get(type(new), _GENERAL).update(new, old)


def validate_status_update(new: KubeObject, old: KubeObject) -> list[FieldError]:
    """What is wrong with a changed status."""
    return _RULES.get(type(new), _GENERAL).status_update(new, old)
