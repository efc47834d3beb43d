"""EndpointSlice: the pods behind each service, in slices of at most a hundred.

Slices are changed as little as possible: endpoints stay where they are, new ones fill
slices that change anyway, then the fullest with room, then new slices.

Source: pkg/controller/endpointslice/endpointslice_controller.go and
staging/src/k8s.io/endpointslice/reconciler.go, Kubernetes 1.33. Departures: the trigger
time is the newest that the objects tell of, not that of the event; no topology hints.
"""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Iterable, Sequence
from dataclasses import dataclass, field

from pydantic import Field

from kcm.api.core_v1 import Node, Pod, Service
from kcm.api.discovery_v1 import (
    Endpoint,
    EndpointConditions,
    EndpointPort,
    EndpointSlice,
)
from kcm.api.meta_v1 import KubeObject, ObjectMeta
from kcm.api.ownership import new_controller_ref
from kcm.reconcile.backends import (
    HEADLESS,
    MANAGED_BY,
    SERVICE_NAME,
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
from kcm.reconcile.contract import Change, Controller, Options, View, Watch, own_key
from kcm.reconcile.counters import Counter, Counts, together
from kcm.reconcile.plan import DONE, Create, Delete, Outcome, Patch, Plan
from kcm.reconcile.pods import is_ready

OURS = "endpointslice-controller.k8s.io"
_FAMILIES = {"IPv4": 4, "IPv6": 6}
_ZONE = "topology.kubernetes.io/zone"


class EndpointSliceOptions(Options):
    """Tunables of the EndpointSlice controller."""

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
    """One key per service."""

    name = "endpointslice-controller"
    short_name = "endpointslice"
    metrics = (CHANGES, SYNCS)
    options_type = EndpointSliceOptions
    options: EndpointSliceOptions
    reads = (Node,)

    def watches(self) -> tuple[Watch, ...]:
        return (
            Watch(Service, own_key),
            Watch(Pod, services_of_pod),
            Watch(EndpointSlice, service_of_slice),
        )

    def concurrent_syncs(self) -> int:
        return self.options.concurrent_service_endpoint_syncs

    def reconcile(self, key: str, view: View) -> Plan:
        service = view.lister(Service).find(key)
        if service is None or service.deleting or not has_backends(service):
            return DONE  # what it leaves behind goes by its owner reference
        all_slices = view.lister(EndpointSlice).list(service.namespace)
        slices = [found for found in all_slices if _is_of(found, service)]
        families = [f for f in service.spec.ip_families or ["IPv4"] if f in _FAMILIES]
        pods = pods_of(service, view)
        plan = Plan()
        for family in families:
            desired = _desired(service, pods, family, view)
            mine = [found for found in slices if found.address_type == family]
            _Packing(service, family, mine, self.options.max_endpoints_per_slice, pods).pack(
                desired, plan
            )
        doomed = [found for found in slices if found.address_type not in families]
        plan.counted = counted
        return plan.then(*(Delete(found) for found in doomed))


def counted(outcome: Outcome) -> Counts:
    """The slices that were written, and the sync."""
    words = {Create: "create", Patch: "update", Delete: "delete"}
    changes = (CHANGES.count(words[type(write)]) for write, _ in outcome.done)
    return together([*changes, SYNCS.count("error" if outcome.failures else "success")])


def service_of_slice(change: Change, view: View) -> Iterable[str]:
    """The service of a slice of ours that somebody changed or deleted."""
    labels = change.object.labels
    if labels.get(MANAGED_BY) == OURS and SERVICE_NAME in labels:
        yield f"{change.object.namespace}/{labels[SERVICE_NAME]}"


def _is_of(found: EndpointSlice, service: Service) -> bool:
    labels = found.labels
    return labels.get(MANAGED_BY) == OURS and labels.get(SERVICE_NAME) == service.name


# --- which endpoints there shall be, by the ports they listen on

Ports = tuple[tuple[str | None, str | None, int | None, str | None], ...]


def _desired(
    service: Service, pods: Sequence[Pod], family: str, view: View
) -> dict[Ports, list[Endpoint]]:
    found: dict[Ports, list[Endpoint]] = defaultdict(list)
    for pod in sorted(pods, key=lambda pod: pod.name):
        addresses = addresses_of(pod, _FAMILIES[family])
        if addresses:
            found[_ports(service, pod)].append(_endpoint(service, pod, addresses, view))
    return found


def _ports(service: Service, pod: Pod) -> Ports:
    ports = []
    for port in service.spec.ports or ():
        number = port_of(pod, port)
        if number is not None:
            ports.append((port.name or "", port.protocol or "TCP", number, port.app_protocol))
    return tuple(ports)


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


def _ports_of(found: EndpointSlice) -> Ports:
    return tuple((p.name, p.protocol, p.port, p.app_protocol) for p in found.ports or ())


def _uid(endpoint: Endpoint) -> str:
    return (endpoint.target_ref.uid if endpoint.target_ref else None) or ""


# --- slices


@dataclass
class _Draft:
    """A slice and the endpoints it shall have; without a slice, one to be made."""

    slice: EndpointSlice | None
    endpoints: list[Endpoint] = field(default_factory=list)
    changed: bool = False


@dataclass
class _Packing:
    """The slices of one service and family."""

    service: Service
    family: str
    slices: Sequence[EndpointSlice]
    most: int
    pods: Sequence[Pod]

    def pack(self, desired: dict[Ports, list[Endpoint]], plan: Plan) -> None:
        """Plan the writes that bring the slices to what is desired."""
        by_ports: dict[Ports, list[EndpointSlice]] = defaultdict(list)
        for found in sorted(self.slices, key=lambda found: found.name):
            by_ports[_ports_of(found)].append(found)
        kept: list[tuple[Ports, _Draft]] = []
        doomed: list[EndpointSlice] = []
        for ports in {**by_ports, **desired}:
            for draft in self._group(by_ports.get(ports, []), desired.get(ports, [])):
                if draft.endpoints:
                    kept.append((ports, draft))
                elif draft.slice is not None:
                    doomed.append(draft.slice)
        if not kept:  # one without endpoints says that there are none
            kept.append(self._placeholder(doomed))
        plan.then(*(write for ports, draft in kept for write in self._writes(ports, draft)))
        plan.then(*(Delete(found) for found in doomed))

    def _placeholder(self, doomed: list[EndpointSlice]) -> tuple[Ports, _Draft]:
        spare = next((found for found in doomed if not found.ports), None)
        if spare is not None:
            doomed.remove(spare)
        return (), _Draft(spare)

    def _group(self, slices: Sequence[EndpointSlice], desired: Sequence[Endpoint]) -> list[_Draft]:
        """The slices for endpoints that listen on the same ports."""
        wanted = {_uid(endpoint): endpoint for endpoint in desired}
        drafts = []
        for found in slices:
            kept = [wanted.pop(_uid(e)) for e in found.endpoints if _uid(e) in wanted]
            drafts.append(_Draft(found, kept, changed=kept != found.endpoints))
        missing = list(wanted.values())
        for draft in drafts:
            if draft.changed and draft.endpoints:
                missing = self._fill(draft, missing)
        while missing:
            missing = self._fill(self._roomiest(drafts, len(missing)), missing)
        return drafts

    def _fill(self, draft: _Draft, missing: list[Endpoint]) -> list[Endpoint]:
        room = self.most - len(draft.endpoints)
        draft.endpoints += missing[:room]
        draft.changed = draft.changed or bool(missing[:room])
        return missing[room:]

    def _roomiest(self, drafts: list[_Draft], count: int) -> _Draft:
        """The fullest slice that takes them all, else a new one."""
        fitting = [d for d in drafts if len(d.endpoints) + min(count, self.most) <= self.most]
        if fitting:
            return max(fitting, key=lambda draft: len(draft.endpoints))
        drafts.append(_Draft(None, changed=True))
        return drafts[-1]

    # --- writes

    def _writes(self, ports: Ports, draft: _Draft) -> list[Create | Patch]:
        if draft.slice is None:
            return [Create(self._new(ports, draft.endpoints))]
        if draft.endpoints == draft.slice.endpoints and draft.slice.labels == self._labels():
            return []

        def change(obj: KubeObject) -> KubeObject:
            assert isinstance(obj, EndpointSlice)
            annotations = {**obj.annotations, **self._annotations()}
            changed = obj.replace(endpoints=draft.endpoints)
            return changed.with_metadata(labels=self._labels(), annotations=annotations or None)

        return [Patch(draft.slice, change)]

    def _labels(self) -> dict[str, str]:
        own = {SERVICE_NAME: self.service.name, MANAGED_BY: OURS}
        headless = {HEADLESS: ""} if is_headless(self.service) else {}
        return {k: v for k, v in self.service.labels.items() if k != HEADLESS} | headless | own

    def _annotations(self) -> dict[str, str]:
        moment = changed_at(self.service, self.pods)
        return {TRIGGER_TIME: moment} if moment else {}

    def _new(self, ports: Ports, endpoints: list[Endpoint]) -> EndpointSlice:
        return EndpointSlice(
            metadata=ObjectMeta(
                generate_name=f"{self.service.name}-",
                namespace=self.service.namespace,
                labels=self._labels(),
                annotations=self._annotations() or None,
                owner_references=[new_controller_ref(self.service)],
            ),
            address_type=self.family,
            endpoints=endpoints,
            ports=[
                EndpointPort(name=name, protocol=protocol, port=port, app_protocol=app)
                for name, protocol, port, app in ports
            ],
        )
