"""EndpointSlice: lists the pods behind each Service in slices of at most 100 endpoints.

Source: pkg/controller/endpointslice/endpointslice_controller.go and
staging/src/k8s.io/endpointslice/reconciler.go, Kubernetes 1.33. Departures: the annotation with the
trigger time has the newest time that the Service and its pods show, not the time of the event;
there are no topology hints; a pod without a node is published.
"""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Iterable, Sequence
from functools import partial
from typing import Any

from pydantic import Field

from kcm import errors
from kcm.api.core_v1 import Node, Pod, Service
from kcm.api.discovery_v1 import Endpoint, EndpointConditions, EndpointSlice
from kcm.controllers.endpoints.endpointslice.packing import OURS, Groups, Packing, Ports, sort_ports
from kcm.helpers.pods import (
    MANAGED_BY,
    SERVICE_NAME,
    addresses_of,
    has_backends,
    hostname_of,
    is_ready,
    last_change_time,
    pods_of,
    port_of,
    reference_to,
    services_of_pod,
)
from kcm.sdk import (
    Change,
    Controller,
    Counter,
    Counts,
    Create,
    Delete,
    Options,
    Outcome,
    Patch,
    Plan,
    View,
    Watch,
    own_key,
    sum_counts,
)

_FAMILIES = {"IPv4": 4, "IPv6": 6}
_ZONE = "topology.kubernetes.io/zone"
_MOST_NAMED = 10  # pods without their nodes that an error names


class EndpointSliceOptions(Options):
    """The options of the EndpointSlice controller."""

    concurrent_service_endpoint_syncs: int = Field(
        default=5,
        ge=1,
        le=50,
        description="The number of service endpoint syncing operations that will be done "
        "concurrently. Larger number = faster endpoint slice updating, but more CPU load",
    )
    max_endpoints_per_slice: int = Field(
        default=100,
        ge=1,
        le=1000,
        description="The maximum number of endpoints that will be added to an EndpointSlice. "
        "More endpoints per slice will result in less endpoint slices, but larger resources",
    )


CHANGES = Counter("endpoint_slice_controller_changes", "Number of changes", ("operation",))
SYNCS = Counter("endpoint_slice_controller_syncs", "Number of syncs", ("result",))


class EndpointSliceController(Controller):
    """Writes the EndpointSlices of Services that have a selector. A key is a Service."""

    name = "endpointslice-controller"
    short_name = "endpointslice"
    metrics = (CHANGES, SYNCS)
    options_type = EndpointSliceOptions
    options: EndpointSliceOptions
    reads = (Node,)

    def watches(self) -> tuple[Watch[Any], ...]:
        return (
            Watch(Service, own_key),
            Watch(Pod, services_of_pod),
            Watch(EndpointSlice, service_of_slice),
        )

    def concurrent_syncs(self) -> int:
        return self.options.concurrent_service_endpoint_syncs

    def reconcile(self, key: str, view: View) -> Plan:
        service = view.lister(Service).find(key)
        if service is None or not has_backends(service):
            return Plan()  # the garbage collector deletes the slices of a deleted Service
        all_slices = view.lister(EndpointSlice).list(service.namespace)
        # A slice that is being deleted no longer counts, even if a finalizer keeps it.
        slices = [
            existing
            for existing in all_slices
            if _is_of(existing, service) and not existing.deleting
        ]
        families = [f for f in service.spec.ip_families or ["IPv4"] if f in _FAMILIES]
        pods, lost = _pods_on_nodes(service, pods_of(service, view), view)
        plan = Plan()
        for family in families:
            mine = [existing for existing in slices if existing.address_type == family]
            most = self.options.max_endpoints_per_slice
            packing = Packing(service, family, mine, most, last_change_time(service, pods))
            packing.pack(_group_endpoints(service, pods, family, view), plan)
        to_delete = [existing for existing in slices if existing.address_type not in families]
        plan.error = lost
        plan.counts_after = partial(count_sync, failed=lost is not None)
        return plan.then(*(Delete(existing) for existing in to_delete))


def count_sync(outcome: Outcome, *, failed: bool = False) -> Counts:
    """Returns the counts of the slices that were written, and of the sync's result."""
    words = {Create: "create", Patch: "update", Delete: "delete"}
    changes = (CHANGES.count(words[type(write)]) for write, _ in outcome.done)
    result = "error" if outcome.failures or failed else "success"
    return sum_counts([*changes, SYNCS.count(result)])


def service_of_slice(change: Change, view: View) -> Iterable[str]:
    """Yields the Services that a changed slice of this controller belongs or belonged to."""
    for state in (change.old, change.new):
        labels = state.labels if state is not None else {}
        if state is not None and labels.get(MANAGED_BY) == OURS and SERVICE_NAME in labels:
            yield f"{state.namespace}/{labels[SERVICE_NAME]}"


def _is_of(existing: EndpointSlice, service: Service) -> bool:
    labels = existing.labels
    return labels.get(MANAGED_BY) == OURS and labels.get(SERVICE_NAME) == service.name


# --- the desired endpoints, grouped by the ports that they listen on


class NodeMissingError(errors.KcmError):
    """Raised when a pod's node does not exist. Such a pod is not published until the node
    exists.
    """


def _pods_on_nodes(
    service: Service, pods: Sequence[Pod], view: View
) -> tuple[list[Pod], NodeMissingError | None]:
    """Returns the pods whose nodes exist, sorted by name, and the error about the others.

    With publishNotReadyAddresses all pods are returned.
    """
    nodes, lost = view.lister(Node), []
    placed = []
    for pod in sorted(pods, key=lambda pod: pod.name):
        name = pod.spec.node_name
        if not name or service.spec.publish_not_ready_addresses or nodes.find(name) is not None:
            placed.append(pod)
        else:
            lost.append(f"skipping Pod {pod.name} for Service {service.key}: Node {name} Not Found")
    return placed, NodeMissingError("; ".join(lost[:_MOST_NAMED])) if lost else None


def _group_endpoints(service: Service, pods: Sequence[Pod], family: str, view: View) -> Groups:
    groups: Groups = defaultdict(list)
    for pod in pods:
        addresses = addresses_of(pod, _FAMILIES[family])
        if addresses:
            groups[_ports(service, pod)].append(_endpoint(service, pod, addresses, view))
    return groups


def _ports(service: Service, pod: Pod) -> Ports:
    ports = []
    for port in service.spec.ports or ():
        number = port_of(pod, port)
        if number is not None:
            ports.append((port.name or "", port.protocol or "TCP", number, port.app_protocol))
    return sort_ports(ports)


def _endpoint(service: Service, pod: Pod, addresses: list[str], view: View) -> Endpoint:
    serving = is_ready(pod)
    always = bool(service.spec.publish_not_ready_addresses)
    node = view.lister(Node).find(pod.spec.node_name) if pod.spec.node_name else None
    return Endpoint(
        addresses=addresses,
        conditions=EndpointConditions(
            ready=always or (serving and not pod.deleting),
            serving=serving,
            terminating=pod.deleting,
        ),
        hostname=hostname_of(pod, service),
        target_ref=reference_to(pod),
        node_name=pod.spec.node_name,
        zone=node.labels.get(_ZONE) if node is not None else None,
    )
