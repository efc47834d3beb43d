"""Endpoints: lists the pods behind each Service in one object, the predecessor of EndpointSlices.

Source: pkg/controller/endpoint/endpoints_controller.go and pkg/api/v1/endpoints/util.go
(RepackSubsets), Kubernetes 1.33. Departure: the annotation with the trigger time has the newest
time that the Service and its pods show, not the time of the event.
"""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from typing import Any

from pydantic import Field

from kcm.api.core_v1 import (
    EndpointAddress,
    EndpointPort,
    Endpoints,
    EndpointSubset,
    Pod,
    Service,
)
from kcm.apimachinery.meta_v1 import ObjectMeta
from kcm.helpers.pods import (
    HEADLESS,
    LEADER_RECORD,
    TRIGGER_TIME,
    addresses_of,
    has_backends,
    hostname_of,
    is_headless,
    is_ready,
    last_change_time,
    pods_of,
    port_of,
    reference_to,
    services_of_pod,
)
from kcm.sdk import (
    Absent,
    Change,
    Controller,
    Create,
    Delete,
    Options,
    Patch,
    Plan,
    View,
    Watch,
    own_key,
)

MOST = 1000  # addresses in one object (upstream's maxCapacity)
TRUNCATED = "endpoints.kubernetes.io/over-capacity"
MANAGED = "endpoints.kubernetes.io/managed-by"
OURS = "endpoint-controller"


class EndpointsOptions(Options):
    """The options of the Endpoints controller."""

    concurrent_endpoint_syncs: int = Field(
        default=5,
        ge=1,
        description="The number of endpoint syncing operations that will be done concurrently. "
        "Larger number = faster endpoint updating, but more CPU load",
    )


class EndpointsController(Controller):
    """Writes the Endpoints of Services that have a selector. A key is a Service."""

    name = "endpoints-controller"
    short_name = "endpoint"
    options_type = EndpointsOptions
    options: EndpointsOptions

    def watches(self) -> tuple[Watch[Any], ...]:
        return (
            Watch(Service, own_key),
            Watch(Pod, services_of_pod),
            Watch(Endpoints, service_of_endpoints),
        )

    def concurrent_syncs(self) -> int:
        return self.options.concurrent_endpoint_syncs

    def reconcile(self, key: str, view: View) -> Plan:
        service = view.lister(Service).find(key)
        present = view.lister(Endpoints).find(key)
        if service is None:
            return _delete_left_behind(key, present)
        if not has_backends(service):
            return Plan()
        pods = pods_of(service, view)
        subsets, truncated = truncate_subsets(MOST, subsets_of(service, pods))
        metadata = _metadata(service, pods, truncated)
        if present is None:
            made = ObjectMeta(name=service.name, namespace=service.namespace, **metadata)
            return Plan().then(Create(Endpoints(metadata=made, subsets=subsets or None)))
        if _same(present, subsets, metadata):
            return Plan()
        return Plan().then(Patch(present, _change_to(subsets, metadata)))


def service_of_endpoints(change: Change, view: View) -> Iterable[str]:
    """Yields the key of the Service whose Endpoints were deleted, or were changed and are or were
    managed by this controller.

    Endpoints of others are ignored, since they may be created before their Service, and a sync that
    finds no Service deletes the Endpoints.
    """
    states = [obj for obj in (change.old, change.new) if obj is not None]
    if change.new is None or any(obj.labels.get(MANAGED) == OURS for obj in states):
        yield change.object.key


def _delete_left_behind(key: str, present: Endpoints | None) -> Plan:
    """Returns a plan that deletes Endpoints without a Service, whoever created them.

    Endpoints that hold the record of a leader election are kept.
    """
    if present is None or LEADER_RECORD in present.annotations:
        return Plan()
    no_service = Absent(Service.resource.name, key)
    return Plan().then(Delete(present, guards=(no_service,)))


_Metadata = dict[str, dict[str, str]]


def _metadata(service: Service, pods: Sequence[Pod], truncated: bool) -> _Metadata:
    """Returns the labels and annotations that this controller sets on the Endpoints."""
    moment = last_change_time(service, pods)
    headless = {HEADLESS: ""} if is_headless(service) else {}
    copied = {k: v for k, v in service.labels.items() if k != HEADLESS}
    return {
        "labels": {**copied, **headless, MANAGED: OURS},
        "annotations": ({TRIGGER_TIME: moment} if moment else {})
        | ({TRUNCATED: "truncated"} if truncated else {}),
    }


def _same(present: Endpoints, subsets: list[EndpointSubset], metadata: _Metadata) -> bool:
    """Reports whether the Endpoints need no write. A difference in the trigger time alone needs
    none.
    """
    over = present.annotations.get(TRUNCATED) == metadata["annotations"].get(TRUNCATED)
    labels = dict(present.labels) == metadata["labels"]
    return (present.subsets or []) == subsets and labels and over


def _change_to(
    subsets: list[EndpointSubset], metadata: _Metadata
) -> Callable[[Endpoints], Endpoints]:
    def change(obj: Endpoints) -> Endpoints:
        ours = (TRIGGER_TIME, TRUNCATED)
        kept = {k: v for k, v in obj.annotations.items() if k not in ours}
        annotations = {**kept, **metadata["annotations"]}
        changed = obj.replace(subsets=subsets or None)
        return changed.with_metadata(labels=metadata["labels"], annotations=annotations or None)

    return change


_Port = tuple[str | None, int, str, str | None]
_NO_PORT: _Port = (None, -1, "", None)  # of a headless Service without ports
_Host = tuple[str, str]  # a pod's IP and uid, which identify an address


def subsets_of(service: Service, pods: Iterable[Pod]) -> list[EndpointSubset]:
    """Returns the subsets for a Service: addresses grouped by the ports that they listen on.

    Ports with exactly the same pods share a subset.
    """
    always = bool(service.spec.publish_not_ready_addresses)
    family = 6 if (service.spec.ip_families or ["IPv4"])[0] == "IPv6" else 4
    addresses_by_host: dict[_Host, EndpointAddress] = {}
    # by port, whether each address is ready
    hosts: dict[_Port, dict[_Host, bool]] = defaultdict(dict)
    for pod in pods:
        addresses = addresses_of(pod, family)
        if not addresses or (pod.deleting and not always):
            continue
        host = addresses[0], pod.uid
        addresses_by_host[host] = _address(service, pod, addresses[0])
        for port in _ports(service, pod):
            hosts[port][host] = always or is_ready(pod)
    shared: dict[frozenset[tuple[_Host, bool]], list[_Port]] = defaultdict(list)
    for port, listening in hosts.items():
        shared[frozenset(listening.items())].append(port)
    subsets = [_subset(ports, sorted(same), addresses_by_host) for same, ports in shared.items()]
    return sorted(subsets, key=lambda subset: str(subset.ports))


def truncate_subsets(most: int, subsets: list[EndpointSubset]) -> tuple[list[EndpointSubset], bool]:
    """Returns subsets with at most `most` addresses, ready ones first, and whether there were more.

    Every subset loses addresses in proportion to its size. Departure: upstream keeps subsets that
    become empty, which its own validation rejects.
    """
    ready = sum(len(subset.addresses or ()) for subset in subsets)
    unready = sum(len(subset.not_ready_addresses or ()) for subset in subsets)
    if ready + unready <= most:
        return subsets, False
    cut = "addresses" if ready > most else "not_ready_addresses"
    room = left = most if ready > most else most - ready
    kept = []
    for subset in subsets:
        addresses = getattr(subset, cut) or []
        share = -(-len(addresses) * room // max(ready if ready > most else unready, 1))
        taken = addresses[: min(share, left)]
        left -= len(taken)
        unready_too = {"not_ready_addresses": None} if ready > most else {}
        kept.append(subset.replace(**unready_too | {cut: taken or None}))
    return [s for s in kept if s.addresses or s.not_ready_addresses], True


def _subset(
    ports: list[_Port],
    hosts: Iterable[tuple[_Host, bool]],
    addresses_by_host: Mapping[_Host, EndpointAddress],
) -> EndpointSubset:
    ready: list[EndpointAddress] = []
    unready: list[EndpointAddress] = []
    for host, is_up in hosts:
        (ready if is_up else unready).append(addresses_by_host[host])
    return EndpointSubset(
        addresses=ready or None,
        not_ready_addresses=unready or None,
        ports=[
            EndpointPort(name=name, port=port, protocol=protocol, app_protocol=app)
            for name, port, protocol, app in sorted(ports, key=str)
            if port != -1
        ]
        or None,
    )


def _ports(service: Service, pod: Pod) -> Iterator[_Port]:
    if not service.spec.ports and is_headless(service):
        yield _NO_PORT
    for port in service.spec.ports or ():
        number = port_of(pod, port)
        if number is not None:
            yield port.name or None, number, port.protocol or "TCP", port.app_protocol


def _address(service: Service, pod: Pod, ip: str) -> EndpointAddress:
    return EndpointAddress(
        ip=ip,
        hostname=hostname_of(pod, service),
        node_name=pod.spec.node_name,
        target_ref=reference_to(pod),
    )
