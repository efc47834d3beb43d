"""Plans the creation, change and deletion of the slices of one Service and address family.

Slices change as little as possible. Endpoints stay in their slices. New endpoints are added first
to slices that change anyway, then to the fullest slice that has room, then to new slices. A slice
that would be deleted is reused for one that would be created.

Source: reconcileByAddressType, reconcileByPortMapping and finalize in
staging/src/k8s.io/endpointslice/reconciler.go, Kubernetes 1.33.
"""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field

from kcm.api.core_v1 import Service
from kcm.api.discovery_v1 import Endpoint, EndpointPort, EndpointSlice
from kcm.apimachinery.meta_v1 import ObjectMeta
from kcm.apimachinery.ownership import new_controller_ref
from kcm.helpers.pods import (
    HEADLESS,
    MANAGED_BY,
    SERVICE_NAME,
    TRIGGER_TIME,
    is_headless,
)
from kcm.sdk import Create, Delete, Patch, Plan

OURS = "endpointslice-controller.k8s.io"

Ports = tuple[tuple[str | None, str | None, int | None, str | None], ...]
"""Sorted ports, each as name, protocol, number and application protocol."""
Groups = dict[Ports, list[Endpoint]]


def sort_ports(ports: Sequence[tuple[str | None, str | None, int | None, str | None]]) -> Ports:
    """Returns the ports sorted, so that the same ports in another order are equal."""
    return tuple(sorted(ports, key=str))


def _ports_of(existing: EndpointSlice) -> Ports:
    return sort_ports([(p.name, p.protocol, p.port, p.app_protocol) for p in existing.ports or ()])


def _uid(endpoint: Endpoint) -> str:
    return (endpoint.target_ref.uid if endpoint.target_ref else None) or ""


@dataclass
class _Draft:
    """A slice, or None for one that is to be created, with the ports and endpoints that it shall
    have.
    """

    slice: EndpointSlice | None
    ports: Ports
    endpoints: list[Endpoint] = field(default_factory=list)
    changed: bool = False
    recycled: bool = False  # the slice had other ports before


@dataclass
class Packing:
    """Plans the writes for the slices of one Service and address family."""

    service: Service
    family: str
    slices: Sequence[EndpointSlice]
    most: int  # endpoints in a slice
    trigger_time: str

    def pack(self, desired: Mapping[Ports, list[Endpoint]], plan: Plan) -> None:
        """Adds to `plan` the writes that make the slices hold the desired endpoints.

        Slices of an earlier Service of this name are deleted. While the Service is being deleted no
        slice is created, since that would race with the garbage collector.
        """
        own = [existing for existing in self.slices if self._owns(existing)]
        kept, empty = self._drafts(own, desired)
        if not kept:  # without any endpoints, one empty slice exists
            kept.append(self._placeholder(empty))
        self._recycle(kept, empty)
        if not self.service.deleting:
            plan.then(*(Create(self._new(draft)) for draft in kept if draft.slice is None))
        plan.then(*(patch for draft in kept if (patch := self._patch(draft)) is not None))
        foreign = [existing for existing in self.slices if not self._owns(existing)]
        plan.then(*(Delete(existing) for existing in (*empty, *foreign)))

    def _owns(self, existing: EndpointSlice) -> bool:
        own = ("v1", "Service", self.service.uid)
        references = existing.metadata.owner_references or ()
        return any((ref.api_version, ref.kind, ref.uid) == own for ref in references)

    def _drafts(
        self, own: Sequence[EndpointSlice], desired: Mapping[Ports, list[Endpoint]]
    ) -> tuple[list[_Draft], list[EndpointSlice]]:
        """Returns the drafts that have endpoints, and the existing slices that have none left."""
        by_ports: dict[Ports, list[EndpointSlice]] = defaultdict(list)
        for existing in sorted(own, key=lambda existing: existing.name):
            by_ports[_ports_of(existing)].append(existing)
        kept: list[_Draft] = []
        empty: list[EndpointSlice] = []
        for ports in {**by_ports, **desired}:
            for draft in self._group(ports, by_ports.get(ports, []), desired.get(ports, [])):
                if draft.endpoints:
                    kept.append(draft)
                elif draft.slice is not None:
                    empty.append(draft.slice)
        return kept, empty

    def _placeholder(self, empty: list[EndpointSlice]) -> _Draft:
        """Returns the draft of a slice without ports and endpoints, which is taken out of `empty`
        or new.
        """
        present = next((s for s in empty if not s.ports and not s.endpoints), None)
        if present is not None:
            empty.remove(present)
        return _Draft(present, ())

    def _recycle(self, kept: Sequence[_Draft], empty: list[EndpointSlice]) -> None:
        """Reuses slices that would be deleted for drafts of new slices."""
        for draft in kept:
            if draft.slice is None and empty:
                draft.slice, draft.recycled = empty.pop(0), True

    def _group(
        self, ports: Ports, slices: Sequence[EndpointSlice], desired: Sequence[Endpoint]
    ) -> list[_Draft]:
        """Returns drafts that hold the desired endpoints, which listen on the same ports."""
        wanted = {_uid(endpoint): endpoint for endpoint in desired}
        drafts = []
        for existing in slices:
            kept = [wanted.pop(_uid(e)) for e in existing.endpoints if _uid(e) in wanted]
            drafts.append(_Draft(existing, ports, kept, changed=kept != existing.endpoints))
        missing = list(wanted.values())
        for draft in sorted(drafts, key=lambda draft: -len(draft.endpoints)):
            if draft.changed and draft.endpoints:
                missing = self._fill(draft, missing)
        while missing:
            missing = self._fill(self._find_room(ports, drafts, len(missing)), missing)
        return drafts

    def _fill(self, draft: _Draft, missing: list[Endpoint]) -> list[Endpoint]:
        room = max(0, self.most - len(draft.endpoints))  # `most` may have been lowered
        draft.endpoints += missing[:room]
        draft.changed = draft.changed or bool(missing[:room])
        return missing[room:]

    def _find_room(self, ports: Ports, drafts: list[_Draft], count: int) -> _Draft:
        """Returns the fullest draft that has room for `count` more endpoints, else a new one."""
        fitting = [d for d in drafts if len(d.endpoints) + min(count, self.most) <= self.most]
        if fitting:
            return max(fitting, key=lambda draft: len(draft.endpoints))
        drafts.append(_Draft(None, ports, changed=True))
        return drafts[-1]

    # --- writes

    def _patch(self, draft: _Draft) -> Patch[EndpointSlice] | None:
        old, labels = draft.slice, self._labels()
        if old is None:
            return None
        same = draft.endpoints == old.endpoints and old.labels == labels
        if same and not draft.recycled:
            return None

        def change(obj: EndpointSlice) -> EndpointSlice:
            annotations = {} if draft.recycled else dict(obj.annotations)
            annotations |= self._annotations()
            changed = obj.replace(endpoints=draft.endpoints)
            if draft.recycled:
                changed = changed.replace(ports=_as_ports(draft.ports))
            return changed.with_metadata(labels=labels, annotations=annotations or None)

        return Patch(old, change)

    def _labels(self) -> dict[str, str]:
        own = {SERVICE_NAME: self.service.name, MANAGED_BY: OURS}
        headless = {HEADLESS: ""} if is_headless(self.service) else {}
        return {k: v for k, v in self.service.labels.items() if k != HEADLESS} | headless | own

    def _annotations(self) -> dict[str, str]:
        return {TRIGGER_TIME: self.trigger_time} if self.trigger_time else {}

    def _new(self, draft: _Draft) -> EndpointSlice:
        return EndpointSlice(
            metadata=ObjectMeta(
                generate_name=f"{self.service.name}-",
                namespace=self.service.namespace,
                labels=self._labels(),
                annotations=self._annotations() or None,
                owner_references=[new_controller_ref(self.service)],
            ),
            address_type=self.family,
            endpoints=draft.endpoints,
            ports=_as_ports(draft.ports),
        )


def _as_ports(ports: Ports) -> list[EndpointPort]:
    return [
        EndpointPort(name=name, protocol=protocol, port=port, app_protocol=app)
        for name, protocol, port, app in ports
    ]
