"""EndpointSliceMirroring: copies Endpoints that users or other programs write into EndpointSlices.

It does so for Services without a selector, with one slice for each combination of ports and address
family. The Endpoints own the slices. Endpoints labelled `endpointslice.kubernetes.io/skip-mirror:
"true"`, and old records of leader elections, are not mirrored.

Source:
pkg/controller/endpointslicemirroring/{endpointslicemirroring_controller,reconciler,utils}.go,
Kubernetes 1.33. Departure: the batch period delays every sync of an Endpoints object, upstream's
only those that a change of its slices asks for.
"""

from __future__ import annotations

import ipaddress
from collections import defaultdict
from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass, field
from datetime import datetime, timedelta
from typing import Any

from pydantic import Field

from kcm.api.core_v1 import EndpointAddress, Endpoints, EndpointSubset, Service
from kcm.api.discovery_v1 import Endpoint, EndpointConditions, EndpointPort, EndpointSlice
from kcm.apimachinery.meta_v1 import ObjectMeta
from kcm.apimachinery.names import subdomain_faults
from kcm.apimachinery.ownership import new_controller_ref
from kcm.helpers.pods import LEADER_RECORD, MANAGED_BY, SERVICE_NAME, TRIGGER_TIME
from kcm.sdk import Change, Controller, Create, Delete, Options, Patch, Plan, View, Watch

OURS = "endpointslicemirroring-controller.k8s.io"
SKIP = "endpointslice.kubernetes.io/skip-mirror"
_LAST_APPLIED = "kubectl.kubernetes.io/last-applied-configuration"
_NOT_MIRRORED = (TRIGGER_TIME, _LAST_APPLIED)  # annotations that slices do not get
_SINCE = "since"  # the key in a sync's memory for the time of the first change of a batch


class EndpointSliceMirroringOptions(Options):
    """The options of the EndpointSliceMirroring controller."""

    mirroring_concurrent_service_endpoint_syncs: int = Field(
        default=5,
        ge=1,
        le=50,
        description="The number of service endpoint syncing operations that will be done "
        "concurrently by the endpointslice-mirroring-controller. Larger number = faster endpoint "
        "slice updating, but more CPU load",
    )
    mirroring_max_endpoints_per_subset: int = Field(
        default=1000,
        ge=1,
        le=1000,
        description="The maximum number of endpoints that will be added to an EndpointSlice by "
        "the endpointslice-mirroring-controller",
    )
    mirroring_endpointslice_updates_batch_period: timedelta = Field(
        timedelta(0),
        ge=timedelta(0),
        description="The length of EndpointSlice updates batching period for "
        "endpointslice-mirroring-controller. Processing of changes will be delayed by this "
        "duration to join them with potential upcoming updates and reduce the overall number of "
        "EndpointSlice updates",
    )


class EndpointSliceMirroringController(Controller):
    """Mirrors Endpoints into EndpointSlices. A key names the Endpoints and their Service alike."""

    name = "endpointslice-mirroring-controller"
    short_name = "endpointslicemirroring"
    options_type = EndpointSliceMirroringOptions
    options: EndpointSliceMirroringOptions
    remembers = True

    def watches(self) -> tuple[Watch[Any], ...]:
        return (
            Watch(Endpoints, find_mirrored_endpoints),
            Watch(Service, service_without_selector),
            Watch(EndpointSlice, endpoints_of_slice),
        )

    def concurrent_syncs(self) -> int:
        return self.options.mirroring_concurrent_service_endpoint_syncs

    def reconcile(self, key: str, view: View) -> Plan:
        left = self._left_of_batch(view)
        if left > 0:
            since = view.memory.get(_SINCE) or view.now.isoformat()
            return Plan(requeue_after=left, state={_SINCE: since})
        plan = self._mirror(key, view)
        plan.state = {} if view.memory else None
        return plan

    def _left_of_batch(self, view: View) -> float:
        """Returns the seconds until the batch period is over that the first change began."""
        since = view.memory.get(_SINCE)
        begun = datetime.fromisoformat(since) if since else view.now
        end = begun + self.options.mirroring_endpointslice_updates_batch_period
        return (end - view.now).total_seconds()

    def _mirror(self, key: str, view: View) -> Plan:
        namespace, _, name = key.partition("/")
        slices = [
            item
            for item in view.lister(EndpointSlice).list(namespace)
            if _is_ours(item) and item.labels.get(SERVICE_NAME) == name and not item.deleting
        ]
        endpoints = view.lister(Endpoints).find(key)
        service = view.lister(Service).find(key)
        if endpoints is None or not _is_mirrored(endpoints):
            return Plan().then(*map(Delete, slices))
        if service is None or service.spec.selector:
            return Plan().then(*map(Delete, slices))
        most = self.options.mirroring_max_endpoints_per_subset
        return _Mirror(endpoints, slices, most).plan()


# --- which keys


def find_mirrored_endpoints(change: Change[Endpoints], view: View) -> Iterable[str]:
    """Returns the key of changed Endpoints that are mirrored or were before the change.

    Returns nothing if their Service has a selector.
    """
    service = view.lister(Service).find(change.object.key)
    if service is not None and service.spec.selector:
        return ()
    states = [obj for obj in (change.old, change.new) if obj is not None]
    return (change.object.key,) if any(map(_is_mirrored, states)) else ()


def service_without_selector(change: Change[Service], view: View) -> Iterable[str]:
    """Returns the key of a Service that gained or lost its selector, or that was added or deleted
    without one.
    """
    states = [obj for obj in (change.old, change.new) if obj is not None]
    selecting = {bool(service.spec.selector) for service in states}
    changed = len(states) == 1 or len(selecting) == 2
    return (change.object.key,) if changed and False in selecting else ()


def endpoints_of_slice(change: Change, view: View) -> Iterable[str]:
    """Yields the keys of the Endpoints to which a changed slice of this controller belongs or
    belonged.
    """
    for existing in (change.old, change.new):
        if (
            isinstance(existing, EndpointSlice)
            and _is_ours(existing)
            and SERVICE_NAME in existing.labels
        ):
            yield f"{existing.namespace}/{existing.labels[SERVICE_NAME]}"


def _is_ours(existing: EndpointSlice) -> bool:
    return existing.labels.get(MANAGED_BY) == OURS


def _is_mirrored(endpoints: Endpoints) -> bool:
    return endpoints.labels.get(SKIP) != "true" and LEADER_RECORD not in endpoints.annotations


# --- slices

_Ports = tuple[tuple[str, str, int, str | None], ...]
_Group = tuple[str, _Ports]  # the address family and the ports of one slice


@dataclass
class _Mirror:
    """Compares the slices of one Endpoints object with those that it should have, and plans the
    writes.
    """

    endpoints: Endpoints
    slices: Sequence[EndpointSlice]
    most: int
    invalid: int = 0
    skipped: int = 0  # the invalid ones included
    creates: list[EndpointSlice] = field(default_factory=list)
    patches: list[tuple[EndpointSlice, EndpointSlice]] = field(default_factory=list)
    to_delete: list[EndpointSlice] = field(default_factory=list)

    def plan(self) -> Plan:
        """Returns the plan with the writes, and Events about addresses that are not mirrored."""
        desired = self._desired()
        present: dict[_Group, list[EndpointSlice]] = defaultdict(list)
        for present_slice in sorted(self.slices, key=lambda present_slice: present_slice.name):
            present[present_slice.address_type, _ports_of(present_slice)].append(present_slice)
        for group in {**present, **desired}:
            self._pair(group, present.get(group, []), desired.get(group, []))
        self._recycle()
        plan = Plan()
        self._record_skipped(plan)
        if not self.endpoints.deleting:
            plan.then(*map(Create, self.creates))
        plan.then(*(_change_to(old, new) for old, new in self.patches))
        return plan.then(*map(Delete, self.to_delete))

    def _desired(self) -> dict[_Group, list[Endpoint]]:
        groups: dict[_Group, dict[tuple[object, ...], Endpoint]] = defaultdict(dict)
        for subset in self.endpoints.subsets or ():
            ports = _ports_of(subset)
            left = self.most
            for address, ready in _addresses(subset):
                family = _family(address.ip)
                if left and family:
                    left -= 1
                    endpoint = _endpoint(address, ready)
                    groups[family, ports].setdefault(_identity(endpoint), endpoint)
                else:
                    self.skipped += 1
                    self.invalid += bool(left)
        return {group: list(each.values())[: self.most] for group, each in groups.items()}

    def _pair(
        self, group: _Group, present: Sequence[EndpointSlice], wanted: list[Endpoint]
    ) -> None:
        """Plans the writes for the slices of one address family and set of ports: exactly one is
        kept.
        """
        if not wanted:
            self.to_delete += present
            return
        new = self._slice(group, wanted)
        if not present:
            self.creates.append(new)
            return
        self.to_delete += present[1:]
        if not _is_equivalent(present[0], new):
            self.patches.append((present[0], new))

    def _recycle(self) -> None:
        """Reuses slices that would be deleted for new slices of the same address family."""
        for new in list(self.creates):
            spare = next((s for s in self.to_delete if s.address_type == new.address_type), None)
            if spare is not None:
                self.to_delete.remove(spare)
                self.creates.remove(new)
                self.patches.append((spare, new))

    def _slice(self, group: _Group, wanted: list[Endpoint]) -> EndpointSlice:
        family, ports = group
        endpoints = self.endpoints
        annotations = {k: v for k, v in endpoints.annotations.items() if k not in _NOT_MIRRORED}
        own = {SERVICE_NAME: endpoints.name, MANAGED_BY: OURS}
        return EndpointSlice(
            metadata=ObjectMeta(
                generate_name=_prefix(endpoints.name),
                namespace=endpoints.namespace,
                labels={**endpoints.labels, **own},
                annotations=annotations or None,
                owner_references=[new_controller_ref(endpoints)],
            ),
            address_type=family,
            endpoints=wanted,
            ports=[
                EndpointPort(name=name, protocol=protocol, port=port, app_protocol=app)
                for name, protocol, port, app in ports
            ],
        )

    def _record_skipped(self, plan: Plan) -> None:
        if self.invalid:
            message = (
                f"Skipped {self.invalid} invalid IP addresses when mirroring to EndpointSlices"
            )
            plan.record(self.endpoints, "InvalidIPAddress", message, warning=True)
        if self.skipped > self.invalid:
            message = (
                f"A max of {self.most} addresses can be mirrored to EndpointSlices per Endpoints "
                f"subset. {self.skipped} addresses were skipped"
            )
            plan.record(self.endpoints, "TooManyAddressesToMirror", message, warning=True)


def _change_to(old: EndpointSlice, new: EndpointSlice) -> Patch[EndpointSlice]:
    def change(obj: EndpointSlice) -> EndpointSlice:
        meta = new.metadata
        changed = obj.replace(endpoints=new.endpoints, ports=new.ports)
        return changed.with_metadata(
            labels=meta.labels,
            annotations=meta.annotations,
            owner_references=meta.owner_references,
        )

    return Patch(old, change)


def _is_equivalent(old: EndpointSlice, new: EndpointSlice) -> bool:
    """Reports whether the slices differ at most in the order of their endpoints.

    Endpoints that were created anew count as a difference: with the reference to the former ones
    the garbage collector would delete the slice. Source: upstream's needRebuildExistingSlices.
    """
    if dict(old.labels) != new.labels or dict(old.annotations) != new.annotations:
        return False
    wanted = {(one.kind, one.name): one.uid for one in new.metadata.owner_references or ()}
    for owner in old.metadata.owner_references or ():
        if wanted.get((owner.kind, owner.name), owner.uid) != owner.uid:
            return False
    before = {_identity(endpoint): endpoint for endpoint in old.endpoints}
    after = {_identity(endpoint): endpoint for endpoint in new.endpoints}
    return before == after


# --- from one kind to the other


def _addresses(subset: EndpointSubset) -> Iterator[tuple[EndpointAddress, bool]]:
    for address in subset.addresses or ():
        yield address, True
    for address in subset.not_ready_addresses or ():
        yield address, False


def _family(ip: str) -> str:
    try:
        return f"IPv{ipaddress.ip_address(ip).version}"
    except ValueError:
        return ""


def _endpoint(address: EndpointAddress, ready: bool) -> Endpoint:
    return Endpoint(
        addresses=[str(ipaddress.ip_address(address.ip))],
        conditions=EndpointConditions(ready=ready),
        hostname=address.hostname or None,
        node_name=address.node_name,
        target_ref=address.target_ref,
    )


def _identity(endpoint: Endpoint) -> tuple[object, ...]:
    """Returns what identifies an endpoint: everything but its readiness."""
    target = endpoint.target_ref
    about = (target.kind, target.namespace, target.name, target.uid) if target else ()
    return (*endpoint.addresses, endpoint.hostname, endpoint.node_name, *about)


def _ports_of(source: EndpointSubset | EndpointSlice) -> _Ports:
    ports = [
        (port.name or "", port.protocol or "TCP", port.port or 0, port.app_protocol)
        for port in source.ports or ()
    ]
    return tuple(sorted(ports, key=str))


def _prefix(name: str) -> str:
    """Returns the generateName for slices: the name with a dash, or without if that would be too
    long.
    """
    return f"{name}-" if not subdomain_faults(f"{name}-a") else name
