"""The free volumes that claims may choose from, by the nodes that reach them.

Claims of one template ask for the same, so one search serves all of them; and a local volume is
only looked at for its own node.

Source: FindMatchingVolume in staging/src/k8s.io/component-helpers/storage/volume/pv_helpers.go,
Kubernetes 1.33.
"""

from __future__ import annotations

from collections.abc import Collection, Iterable, Mapping, Sequence
from typing import NamedTuple

from kcm.api.core_v1 import PersistentVolume
from kcm.helpers.nodeaffinity import Term
from kcm.helpers.volumes.binding import VolumeRequest, capacity_of, has_modes

_HOSTNAME = "kubernetes.io/hostname"


class _Free(NamedTuple):
    """A volume with the terms that are left to check of a node; None if there are none."""

    name: str
    volume: PersistentVolume
    terms: tuple[Term, ...] | None

    def is_reached(self, labels: Mapping[str, str]) -> bool:
        return self.terms is None or any(term.matches(labels, "") for term in self.terms)


class FreeVolumes:
    """The free volumes that fit a wish, the smallest first."""

    def __init__(self, wish: VolumeRequest, volumes: Iterable[PersistentVolume]) -> None:
        self._anywhere: list[_Free] = []  # not tied to nodes by their host names
        self._by_host: dict[str, list[_Free]] = {}
        fitting = [
            volume
            for volume in volumes
            if wish.takes(volume) and wish.could_have(volume) and has_modes(volume, wish.claim)
        ]
        for volume in sorted(fitting, key=capacity_of):
            self._add(volume)

    def _add(self, volume: PersistentVolume) -> None:
        affinity = volume.spec.node_affinity
        required = None if affinity is None else affinity.required
        terms = None if required is None else tuple(map(Term.of, required.node_selector_terms))
        hosts = None if terms is None else _hosts_of(terms)
        if hosts is None:
            self._anywhere.append(_Free(volume.name, volume, terms))
            return
        left = None if _is_host_alone(terms or ()) else terms
        for host in hosts:
            self._by_host.setdefault(host, []).append(_Free(volume.name, volume, left))

    def find(self, labels: Mapping[str, str], *taken: Collection[str]) -> PersistentVolume | None:
        """Returns the smallest volume that a node with these labels reaches, or None.

        `taken` are collections of names of volumes that are no longer free.
        """
        best: PersistentVolume | None = None
        for group in (self._by_host.get(labels.get(_HOSTNAME, ""), ()), self._anywhere):
            volume = _first(group, labels, taken) if group else None
            if volume is None:
                continue
            if best is None or capacity_of(volume) < capacity_of(best):
                best = volume
        return best


def _first(
    group: Sequence[_Free], labels: Mapping[str, str], taken: Sequence[Collection[str]]
) -> PersistentVolume | None:
    for free in group:
        for names in taken:
            if free.name in names:
                break
        else:
            if free.terms is None or free.is_reached(labels):
                return free.volume
    return None


def _is_host_alone(terms: Sequence[Term]) -> bool:
    """Reports whether host names are all that the terms ask for."""
    return all(len(term.expressions) == 1 and not term.fields for term in terms)


def _hosts_of(terms: Iterable[Term]) -> set[str] | None:
    """Returns the host names of the only nodes that can match, None if they are not restricted."""
    hosts: set[str] = set()
    for term in terms:
        named = [
            requirement.values or ()
            for requirement in term.expressions
            if requirement.key == _HOSTNAME and requirement.operator == "In"
        ]
        if not named:
            return None
        hosts.update(named[0])
    return hosts
