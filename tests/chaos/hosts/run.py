"""Rounds of faults, and what is checked after each."""

from __future__ import annotations

import random
import threading
import time
from collections import Counter
from collections.abc import Sequence
from itertools import pairwise
from pathlib import Path

from kcm import errors
from kcm.api.core_v1 import ConfigMap, Namespace
from kcm.apimachinery.meta_v1 import KubeObject, ObjectMeta
from kcm.testing.waiting import let_time_pass, until
from tests.chaos import workload
from tests.chaos.hosts import probe
from tests.chaos.hosts.clients import CONFIGMAPS, NAMESPACE, PREFIX, Clients
from tests.chaos.hosts.faults import NEVER, OF_REDIS, Fault, draw
from tests.chaos.hosts.rig import Rig
from tests.new_objects import replica_set

SETTLED_WITHIN = 120.0  # seconds after the last fault of a round
ASKING = 4  # keys of the probing controller
_GRACE = 8.0  # seconds after a fault in which a key may be with two syncs, of which one is fenced


class Failure(Exception):  # noqa: N818 - it ends a run
    """The whole did not settle."""


class Run:
    """One run on one rig."""

    def __init__(self, rig: Rig, seed: int) -> None:
        self._rig = rig
        self._rng = random.Random(seed)
        self._clients = Clients(rig)
        self._record = self._clients.record
        self._number = 0  # what the probing controller is asked for
        self._windows: list[tuple[float, float]] = []  # the times of faults
        self.faults: Counter[str] = Counter()
        self.lost: list[str] = []
        self.wrong: list[str] = []
        self.slowest = 0.0  # seconds until the whole had settled

    def prepare(self) -> None:
        """Creates what faults and users change, and waits until all is there."""
        for name in (NAMESPACE, probe.NAMESPACE):
            self._create(Namespace(metadata=ObjectMeta(name=name)))
        self._stir()
        self._settle(SETTLED_WITHIN)

    def break_all(self, count: int) -> None:
        """Lets so many faults happen. Raises: Failure."""
        while (done := self.faults.total()) < count:
            chosen = draw(self._rng)[: count - done]
            line = self._break_some(chosen)
            print(f"{self.faults.total()}: {line}", flush=True)  # noqa: T201 - a command

    def _break_some(self, chosen: Sequence[tuple[str, Fault]]) -> str:
        self._stir()
        began = time.monotonic()
        said: list[str] = []
        threads = [
            threading.Thread(target=self._take_place, args=(fault, self._rng.random(), said))
            for _, fault in chosen
        ]
        for thread in threads:
            thread.start()
        self._stir()
        for thread in threads:
            thread.join()
        self._windows.append((began, time.monotonic() + _GRACE))
        self.faults.update(name for name, _ in chosen)
        self._stir()
        try:
            took = self._settle(SETTLED_WITHIN)
        except AssertionError as error:
            raise Failure(f"{said}: {error}") from error
        self.slowest = max(self.slowest, took)
        self.wrong += [text for text in said if NEVER in text]
        gap = self._record.take_gap()
        lost = self._check(may_lose=any(name in OF_REDIS for name, _ in chosen))
        return f"{'; '.join(said)} | settled in {took:.1f} s, longest gap {gap:.1f} s{lost}"

    def _take_place(self, fault: Fault, seed: float, said: list[str]) -> None:
        rng = random.Random(seed)
        let_time_pass(rng.uniform(0, 2), "faults of a round do not begin at once")
        try:
            said.append(fault(self._rig, rng))
        except Exception as error:
            said.append(f"{NEVER}: {error!r}")
            raise

    # --- users

    def _stir(self) -> None:
        self._number += 1
        for name in workload.NAMES:
            self._create(replica_set(name, replicas=5))
        workload.stir(self._rig.world, self._rng, 6)
        for number in range(ASKING):
            name = f"{probe.PREFIX}{number}"
            meta = ObjectMeta(name=name, namespace=probe.NAMESPACE)
            data = {"number": str(self._number)}
            self._create(ConfigMap(metadata=meta, data=data))
            try:
                self._rig.store.patch(CONFIGMAPS, f"{probe.NAMESPACE}/{name}", {"data": data})
            except (errors.Temporary, errors.NotFound):
                return

    def _create(self, obj: KubeObject) -> None:
        try:
            self._rig.store.create(obj)
        except (errors.AlreadyExists, errors.Temporary, errors.NotFound):
            return

    # --- checks

    def _settle(self, within: float) -> float:
        began = time.monotonic()
        self._rig.wait(self._list_faults, "not settled", within)
        return time.monotonic() - began

    def _list_faults(self) -> list[str]:
        wrong = self._rig.list_faults()
        if not wrong:
            answers = Counter(self._list_answers())
            asked = self._rig.store.list(CONFIGMAPS, namespace=probe.NAMESPACE).items
            for obj in asked:
                if isinstance(obj, ConfigMap) and obj.name.startswith(probe.PREFIX) and obj.data:
                    question = f"{obj.name}.{obj.data['number']}"
                    if not obj.labels and question not in answers:
                        wrong.append(f"{question} has no answer")
        return wrong

    def _list_answers(self) -> list[str]:
        listed = self._rig.store.list(CONFIGMAPS, namespace=probe.NAMESPACE).items
        return [obj.labels[probe.ANSWERS] for obj in listed if probe.ANSWERS in obj.labels]

    def _check(self, may_lose: bool) -> str:
        """Compares what was acknowledged with what is stored, and caches with it."""
        clients, record = self._clients, self._record
        clients.rest()
        lost = record.check(self._stored())
        if lost and self._rig.durability == "local" and may_lose:
            self.lost += lost
        else:
            self.wrong += [f"lost: {text}" for text in lost]
        stored = self._stored()
        watchers = clients.watchers
        try:
            until(lambda: all(w.versions == stored for w in watchers), "caches", 30)
        except AssertionError:
            for number, watcher in enumerate(watchers):
                differ = set(watcher.versions.items()) ^ set(stored.items())
                self.wrong.append(f"the cache of watcher {number} differs: {sorted(differ)[:6]}")
        twice = [q for q, count in Counter(self._list_answers()).items() if count > 1]
        self.wrong += [f"{question} was answered twice" for question in twice]
        self.wrong += [*record.doubled, *record.wrong]
        record.doubled.clear()
        record.wrong.clear()
        self._forget_answers()
        clients.go_on()
        return f", LOST {lost}" if lost else ""

    def _stored(self) -> dict[str, int]:
        listed = self._rig.store.list(CONFIGMAPS, namespace=NAMESPACE).items
        return {
            o.name: int(o.metadata.resource_version or 0)
            for o in listed
            if o.name.startswith(PREFIX)
        }

    def _forget_answers(self) -> None:
        """Deletes the answers to earlier questions, which have been looked at."""
        for obj in self._rig.store.list(CONFIGMAPS, namespace=probe.NAMESPACE).items:
            asked = obj.labels.get(probe.ANSWERS, "")
            if asked and int(asked.rpartition(".")[2]) < self._number - 3:
                try:
                    self._rig.store.delete(CONFIGMAPS, obj.key)
                except (errors.NotFound, errors.Temporary):
                    continue

    def _list_overlaps(self) -> list[str]:
        """Returns the syncs of one key at once outside of the times of faults."""
        syncs = sorted(
            (key, float(began), float(ended))
            for file in Path(self._rig.probes).iterdir()
            for key, began, ended in map(str.split, file.read_text().splitlines())
        )
        overlaps = []
        for (key, _, ended), (other, began, _) in pairwise(syncs):
            is_excused = any(first <= began <= last for first, last in self._windows)
            if key == other and began < ended and not is_excused:
                overlaps.append(f"{key} was synced twice at {began}")
        return overlaps

    def end(self) -> str:
        """Ends the clients, and returns what was seen."""
        self._clients.close()
        self.wrong += self._list_overlaps()
        record = self._record
        failed = ", ".join(f"{count} x {name}" for name, count in sorted(record.failures.items()))
        return (
            f"{self.faults.total()} faults, acknowledged {record.acknowledged}, "
            f"lost {len(self.lost)} within the promise, resourceVersions {len(record.versions)}, "
            f"settled within {self.slowest:.1f} s, slowest request {record.slowest:.1f} s, "
            f"failures: {failed or 'none'}\n{dict(sorted(self.faults.items()))}"
        )
