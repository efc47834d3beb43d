"""Which Services get a load balancer, which nodes it has, and which changes matter to it.

Source: needsUpdate, needsCleanup, wantsLoadBalancer, shouldSyncUpdatedNode and the node predicates
in staging/src/k8s.io/cloud-provider/controllers/service/controller.go, Kubernetes 1.33.
"""

from __future__ import annotations

import hashlib
from collections.abc import Iterable, Sequence
from typing import Any

from kcm.api.core_v1 import Node, Service

FINALIZER = "service.kubernetes.io/load-balancer-cleanup"
EXCLUDE_LABEL = "node.kubernetes.io/exclude-from-external-load-balancers"
TO_BE_DELETED_TAINT = "ToBeDeletedByClusterAutoscaler"
# The texts that Go's strconv.ParseBool reads as false.
_FALSE = frozenset({"0", "f", "F", "false", "FALSE", "False"})


def wants_load_balancer(service: Service) -> bool:
    """Reports whether the Service gets a load balancer of the cloud provider.

    One with a loadBalancerClass gets it from another controller.
    """
    return service.spec.type == "LoadBalancer" and service.spec.load_balancer_class is None


def has_finalizer(service: Service) -> bool:
    """Reports whether the Service may have a load balancer that has to be deleted before it."""
    return FINALIZER in (service.metadata.finalizers or ())


def needs_cleanup(service: Service) -> bool:
    """Reports whether the load balancer has to be deleted."""
    if not has_finalizer(service):
        return False
    return service.metadata.deletion_timestamp is not None or service.spec.type != "LoadBalancer"


def fingerprint_service(service: Service) -> str:
    """Returns a text that changes with everything about a Service that its load balancer has."""
    spec = service.spec
    ports = [
        (p.name, p.protocol, p.port, p.node_port, p.target_port, p.app_protocol)
        for p in spec.ports or ()
    ]
    client_ip = spec.session_affinity_config and spec.session_affinity_config.client_ip
    return _digest(
        service.uid,
        ports,
        spec.load_balancer_source_ranges or [],
        spec.session_affinity,
        client_ip and client_ip.timeout_seconds,
        spec.load_balancer_ip,
        spec.external_ips or [],
        sorted(service.annotations.items()),
        spec.external_traffic_policy,
        spec.health_check_node_port,
        len(spec.ip_families or ()),
    )


def fingerprint_nodes(nodes: Iterable[Node]) -> str:
    """Returns a text that changes with the set of nodes, and with their providerIDs."""
    return _digest(sorted((node.name, node.spec.provider_id or "") for node in nodes))


def _digest(*parts: Any) -> str:
    return hashlib.sha256(repr(parts).encode()).hexdigest()[:32]


def select_nodes(nodes: Iterable[Node]) -> tuple[Node, ...]:
    """Returns the nodes that load balancers have, whether they are ready or not.

    Left out are nodes that are being deleted, excluded by label, or about to be removed by the
    cluster autoscaler.
    """
    chosen = (
        node
        for node in nodes
        if node.metadata.deletion_timestamp is None
        and is_included(node)
        and all(taint.key != TO_BE_DELETED_TAINT for taint in node.spec.taints or ())
    )
    return tuple(sorted(chosen, key=lambda node: node.name))


def is_included(node: Node) -> bool:
    """Reports whether no label excludes the node from load balancers."""
    return node.labels.get(EXCLUDE_LABEL, "false") in _FALSE


def matters_to_load_balancers(old: Node | None, new: Node | None) -> bool:
    """Reports whether the change of a node may change the nodes of load balancers."""
    if old is None or new is None:
        return True
    return is_included(old) != is_included(new) or old.spec.provider_id != new.spec.provider_id


def name_nodes(nodes: Sequence[Node], most: int = 20) -> str:
    """Returns the names for a message, of at most 20 nodes, as upstream's log shows lists."""
    names = sorted(node.name for node in nodes[:most])
    more = [f"<{len(nodes) - most} more>"] if len(nodes) > most else []
    return f"[{' '.join([*names, *more])}]"
