"""Compares the garbage collector with a short model of upstream's rules on random owner graphs."""

from __future__ import annotations

import random
from dataclasses import dataclass, field

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from kcm.api.core_v1 import Node, Pod
from kcm.apimachinery.meta_v1 import KubeObject
from kcm.controllers.garbagecollector import GarbageCollector
from kcm.controllers.garbagecollector.controller import item_keys
from kcm.reconcile.contract import Change
from kcm.reconcile.plan import AnyPlan
from kcm.store import DeleteOptions
from kcm.store.options import PropagationPolicy
from kcm.testing.builders import node, owner_reference, pod
from kcm.testing.world import World

NAMES = [f"{place}{number}" for place in "abn" for number in range(4)]
POLICIES: list[PropagationPolicy] = ["Background", "Foreground", "Orphan"]


def bare(name: str) -> KubeObject:
    """Returns an object by name: a1 and b1 are pods of the namespaces a and b, n1 is a node."""
    return node(name) if name[0] == "n" else pod(name, namespace=name[0])


@dataclass
class Model:
    """The existing objects by name, with the names of their owners."""

    owners: dict[str, set[str]]  # of those that are there
    blocking: set[tuple[str, str]] = field(default_factory=set)

    def is_outside(self, name: str) -> bool:
        """Reports whether a cluster-scoped object names a namespaced owner; such an object is never
        changed.
        """
        return name[0] == "n" and any(owner[0] != "n" for owner in self.owners[name])

    def is_solid(self, name: str, owner: str) -> bool:
        return owner in self.owners and (owner[0] == "n" or owner[0] == name[0])

    def settle(self) -> None:
        """Removes objects that have owners but none that exists, then references to absent
        owners.
        """
        while lost := [n for n in self.owners if self._is_lost(n)]:
            for name in lost:
                del self.owners[name]
        for name, owners in self.owners.items():
            if not self.is_outside(name):
                self.owners[name] = {o for o in owners if self.is_solid(name, o)}

    def _is_lost(self, name: str) -> bool:
        owners = self.owners[name]
        if not owners or self.is_outside(name):
            return False
        return not any(self.is_solid(name, owner) for owner in owners)

    def delete(self, name: str, policy: PropagationPolicy) -> None:
        del self.owners[name]
        if policy == "Orphan":
            for owners in self.owners.values():
                owners.discard(name)
        self.settle()


@st.composite
def graphs(draw: st.DrawFn) -> Model:
    owners = {}
    present = draw(st.sets(st.sampled_from(NAMES), min_size=1))
    for name in sorted(present):
        others = [other for other in NAMES if other != name]
        owners[name] = draw(st.sets(st.sampled_from(others), max_size=3))
    model = Model(owners)
    pairs = [(n, o) for n, item in owners.items() for o in sorted(item) if not model.is_outside(n)]
    model.blocking = draw(st.sets(st.sampled_from(pairs))) if pairs else set()
    return model


def build_objects(model: Model) -> list[KubeObject]:
    objects = []
    for name, owners in model.owners.items():
        references = [
            owner_reference(bare(owner), block_owner_deletion=(name, owner) in model.blocking)
            for owner in sorted(owners)
        ]
        objects.append(bare(name).with_metadata(owner_references=references or None))
    return objects


class Collected:
    """A World in which the garbage collector handles every change, in random order."""

    def __init__(self, objects: list[KubeObject], seed: int, *, sweeps_only: bool) -> None:
        self.world = World(*objects, watch=self._see)
        self._keys: set[str] = set()
        self._rng = random.Random(seed)
        self._sweeps_only = sweeps_only
        self._controller = GarbageCollector()
        for obj in objects:
            self._see(Change(None, obj))

    def _see(self, change: Change) -> None:
        self._keys.update(item_keys(change, self.world.view()))

    def settle(self) -> None:
        for _ in range(300):
            if self._sweeps_only:
                plan: AnyPlan = self._controller.sweep(self.world.view(), {})
                if not plan.writes:
                    return
            elif self._keys:
                key = self._rng.choice(sorted(self._keys))
                self._keys.discard(key)
                plan = self._controller.reconcile(key, self.world.view())
            else:
                return
            failures = len(self.world.failures)
            self.world.carry_out(plan)
            if len(self.world.failures) > failures and not self._sweeps_only:
                self._keys.add(key)  # the queue retries what failed
        pytest.fail("the garbage collector does not come to rest")

    def graph(self) -> dict[str, set[str]]:
        objects = (*self.world.of(Pod), *self.world.of(Node))
        return {o.name: {r.name for r in o.metadata.owner_references or ()} for o in objects}


@pytest.mark.parametrize("sweeps_only", [False, True])
@settings(max_examples=60, deadline=None)
@given(data=st.data(), model=graphs(), seed=st.integers(0, 99))
def test_what_is_left_is_what_upstreams_rules_leave(
    sweeps_only: bool, data: st.DataObject, model: Model, seed: int
) -> None:
    collected = Collected(build_objects(model), seed, sweeps_only=sweeps_only)
    collected.settle()
    model.settle()
    assert collected.graph() == model.owners
    for _ in range(3):
        if not model.owners:
            return
        name = data.draw(st.sampled_from(sorted(model.owners)))
        policy = data.draw(st.sampled_from(POLICIES))
        (victim,) = (o for o in collected.world.objects.values() if o.name == name)
        collected.world.delete(victim, DeleteOptions(propagation_policy=policy))
        collected.settle()
        model.delete(name, policy)
        assert collected.graph() == model.owners


@pytest.mark.parametrize("length", [2, 3, 4])
@pytest.mark.parametrize("seed", range(5))
def test_a_circle_of_owners_does_not_wait_for_itself(length: int, seed: int) -> None:
    names = [f"a{number}" for number in range(length)]
    model = Model({name: {names[number - 1]} for number, name in enumerate(names)})
    model.blocking = {(name, owner) for name in names for owner in model.owners[name]}
    collected = Collected(build_objects(model), seed, sweeps_only=False)
    collected.settle()
    assert collected.graph() == model.owners
    victim = next(iter(collected.world.objects.values()))
    collected.world.delete(victim, DeleteOptions(propagation_policy="Foreground"))
    collected.settle()
    assert collected.graph() == {}
