"""Endpoints: the pods behind each service, in one object, as it was before EndpointSlices.

Source: pkg/controller/endpoint/endpoints_controller.go and pkg/api/v1/endpoints/util.go
(RepackSubsets), Kubernetes 1.33. Departure: the trigger time is the newest that the
objects tell of, not that of the event.
"""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Callable, Iterable, Sequence

from pydantic import Field

from kcm.api.core_v1 import (
    EndpointAddress,
    EndpointPort,
    Endpoints,
    EndpointSubset,
    Pod,
    Service,
)
from kcm.api.meta_v1 import KubeObject, ObjectMeta
from kcm.reconcile.backends import (
    HEADLESS,
    TRIGGER_TIME,
    addresses_of,
    changed_at,
    has_backends,
    hostname_of,
    is_headless,
    pods_of,
    port_of,
    reference_to,
    services_of_pod,
)
from kcm.reconcile.contract import Controller, Options, View, Watch, own_key
from kcm.reconcile.plan import DONE, Create, Delete, Patch, Plan
from kcm.reconcile.pods import is_ready

MOST = 1000  # addresses in one object; upstream's maxCapacity
TRUNCATED = "endpoints.kubernetes.io/over-capacity"
MANAGED = "endpoints.kubernetes.io/managed-by"
OURS = "endpoint-controller"


class EndpointsOptions(Options):
    """Tunables of the Endpoints controller."""

    concurrent_endpoint_syncs: int = Field(
        default=5,
        ge=1,
        description="The number of endpoint syncing operations that will be done concurrently. "
        "Larger number = faster endpoint updating, but more CPU load",
    )


class EndpointsController(Controller):
    """One key per service."""

    name = "endpoints-controller"
    short_name = "endpoint"
    options_type = EndpointsOptions
    options: EndpointsOptions

    def watches(self) -> tuple[Watch, ...]:
        return (
            Watch(Service, own_key),
            Watch(Pod, services_of_pod),
            Watch(Endpoints, own_key),
        )

    def concurrent_syncs(self) -> int:
        return self.options.concurrent_endpoint_syncs

    def reconcile(self, key: str, view: View) -> Plan:
        service = view.lister(Service).find(key)
        present = view.lister(Endpoints).find(key)
        if service is None:
            ours = present is not None and present.labels.get(MANAGED) == OURS
            return Plan().then(Delete(present)) if present is not None and ours else DONE
        if service.deleting or not has_backends(service):
            return DONE
        pods = sorted(pods_of(service, view), key=lambda pod: pod.name)
        subsets, truncated = subsets_of(service, pods)
        metadata = _metadata(service, pods, truncated)
        if present is None:
            made = ObjectMeta(name=service.name, namespace=service.namespace, **metadata)
            return Plan().then(Create(Endpoints(metadata=made, subsets=subsets or None)))
        if _same(present, subsets, metadata):
            return DONE
        return Plan().then(Patch(present, _becoming(subsets, metadata)))


_Metadata = dict[str, dict[str, str]]


def _metadata(service: Service, pods: Sequence[Pod], truncated: bool) -> _Metadata:
    """The labels and annotations that are ours to set."""
    moment = changed_at(service, pods)
    headless = {HEADLESS: ""} if is_headless(service) else {}
    copied = {k: v for k, v in service.labels.items() if k != HEADLESS}
    return {
        "labels": {**copied, **headless, MANAGED: OURS},
        "annotations": ({TRIGGER_TIME: moment} if moment else {})
        | ({TRUNCATED: "truncated"} if truncated else {}),
    }


def _same(present: Endpoints, subsets: list[EndpointSubset], metadata: _Metadata) -> bool:
    """Whether nothing that counts differs: a new time alone is no reason to write."""
    over = present.annotations.get(TRUNCATED) == metadata["annotations"].get(TRUNCATED)
    labels = dict(present.labels) == metadata["labels"]
    return (present.subsets or []) == subsets and labels and over


def _becoming(
    subsets: list[EndpointSubset], metadata: _Metadata
) -> Callable[[KubeObject], KubeObject]:
    def change(obj: KubeObject) -> KubeObject:
        assert isinstance(obj, Endpoints)
        ours = (TRIGGER_TIME, TRUNCATED)
        kept = {k: v for k, v in obj.annotations.items() if k not in ours}
        annotations = {**kept, **metadata["annotations"]}
        found = obj.replace(subsets=subsets or None)
        return found.with_metadata(labels=metadata["labels"], annotations=annotations or None)

    return change


_Ports = tuple[tuple[str | None, int, str, str | None], ...]


def subsets_of(service: Service, pods: Iterable[Pod]) -> tuple[list[EndpointSubset], bool]:
    """Addresses by the ports they listen on, and whether there were too many of them."""
    always = bool(service.spec.publish_not_ready_addresses)
    family = 6 if (service.spec.ip_families or ["IPv4"])[0] == "IPv6" else 4
    ready: dict[_Ports, list[EndpointAddress]] = defaultdict(list)
    unready: dict[_Ports, list[EndpointAddress]] = defaultdict(list)
    for pod in pods:
        addresses = addresses_of(pod, family)
        ports = _ports(service, pod)
        if (pod.deleting and not always) or not addresses or (service.spec.ports and not ports):
            continue
        where = ready if always or is_ready(pod) else unready
        where[ports].append(_address(service, pod, addresses[0]))
    kept, truncated = _truncated(ready, unready)
    return [_subset(ports, *found) for ports, found in sorted(kept.items(), key=str)], truncated


def _truncated(
    ready: dict[_Ports, list[EndpointAddress]], unready: dict[_Ports, list[EndpointAddress]]
) -> tuple[dict[_Ports, tuple[list[EndpointAddress], list[EndpointAddress]]], bool]:
    """At most a thousand addresses, ready ones first."""
    left = MOST
    kept: dict[_Ports, tuple[list[EndpointAddress], list[EndpointAddress]]] = {}
    for which, group in enumerate((ready, unready)):
        for ports, addresses in group.items():
            taken = addresses[:left]
            left -= len(taken)
            if taken:
                kept.setdefault(ports, ([], []))[which].extend(taken)
    total = sum(len(addresses) for group in (ready, unready) for addresses in group.values())
    return kept, total > MOST


def _subset(
    ports: _Ports, ready: list[EndpointAddress], unready: list[EndpointAddress]
) -> EndpointSubset:
    return EndpointSubset(
        addresses=ready or None,
        not_ready_addresses=unready or None,
        ports=[
            EndpointPort(name=name, port=port, protocol=protocol, app_protocol=app)
            for name, port, protocol, app in ports
        ]
        or None,
    )


def _ports(service: Service, pod: Pod) -> _Ports:
    found = []
    for port in service.spec.ports or ():
        number = port_of(pod, port)
        if number is not None:
            found.append((port.name or None, number, port.protocol or "TCP", port.app_protocol))
    return tuple(found)


def _address(service: Service, pod: Pod, ip: str) -> EndpointAddress:
    return EndpointAddress(
        ip=ip,
        hostname=hostname_of(pod, service),
        node_name=pod.spec.node_name,
        target_ref=reference_to(pod),
    )
