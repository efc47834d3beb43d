"""The pods of a simulator: admits, advances, reports and removes them, in batches.

Guarantees: a status is written only over the resourceVersion it was computed from and to the same
uid, so that it never goes back. No more pods are admitted to a node than fit. A pod on a silent
node is not changed. A pod at rest is kept as JSON.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable, Sequence
from dataclasses import replace
from itertools import islice
from weakref import WeakValueDictionary

import structlog

from kcm import errors
from kcm.api.core_v1 import Pod
from kcm.apimachinery.ownership import controller_of
from kcm.kubelet import resizing
from kcm.kubelet.admission import NodeUsage, check_predicates
from kcm.kubelet.status.phase import TERMINAL
from kcm.redisio import Fence
from kcm.simulation import recovery, resizes, statuses, worker
from kcm.simulation.context import SimulatorContext
from kcm.simulation.nodes import SimulatedNode, SimulatedNodes
from kcm.simulation.programs.programs import SimulatedPrograms
from kcm.simulation.runs import PodRun, begin
from kcm.simulation.scripting import scripts
from kcm.simulation.scripting.addresses import PodAddresses
from kcm.simulation.scripting.scripts import PodScript
from kcm.simulation.storage.mounts import PodMounts, Waiting, find_volumes, has_claims, wait_for
from kcm.simulation.storage.seen import SeenStorage
from kcm.simulation.tracked import PODS, TrackedPod
from kcm.store import DeleteOptions, WriteItem, WriteResult, damage
from kcm.store.options import Subresource

log = structlog.get_logger("kcm.nodes")

BOUND = b'"nodeName":"'  # part of every bound pod's JSON; quotes within values are escaped
BATCH = 500  # pods that are advanced at a time, so that renewals of leases are not delayed
SANDBOX_RETRY = 10.0  # seconds, while no address is free
_NOW = DeleteOptions(grace_period_seconds=0)


class SimulatedPods:
    """All pods on the nodes of a simulator. Not thread-safe."""

    def __init__(
        self, context: SimulatorContext, nodes: SimulatedNodes, storage: SeenStorage
    ) -> None:
        self._store = context.store
        self._nodes = nodes
        self._storage = storage
        self._waiting: dict[str, set[str]] = {}  # pods that wait for their volumes, by claim
        self._options = context.options
        self._stages = context.stages
        self._timers = context.timers
        self._recorder = context.recorder
        self._programs: SimulatedPrograms | None = None
        if self._options.programs:
            key_file = self._options.signing_key_file
            self._programs = SimulatedPrograms(context.store, key_file)
        self._addresses = PodAddresses(self._options.pod_cidr)
        self._taken: dict[str, NodeUsage] = {}
        self._alike: WeakValueDictionary[object, NodeUsage] = WeakValueDictionary()
        self.tracked: dict[str, TrackedPod] = {}
        self.dirty: dict[str, None] = {}  # the keys of pods to advance, in order

    # --- changes from the watch

    def handle_changed(
        self, key: str, raw: bytes, version: int, *, is_listed: bool = False
    ) -> None:
        """Handles a written pod, whether this process or another client wrote it.

        `raw` is the pod's JSON, `version` its resourceVersion. An older version than the known one
        is news only if it `is_listed`: then a failover of the store has undone the later write.
        """
        tracked = self.tracked.get(key)
        if tracked is None and BOUND not in raw:
            return
        if tracked is not None and version == tracked.version:
            tracked.raw, tracked.pod = raw, None  # this is our own write
            return
        if tracked is not None and version < tracked.version and not is_listed:
            return
        try:
            pod = damage.decode_object(PODS, key, raw)
        except errors.Damaged as error:  # other pods are not affected
            log.warning("A pod cannot be read", key=key, error=error.message)
            return
        if tracked is not None and tracked.uid != pod.uid:
            self.handle_deleted(key)
            tracked = None
        if tracked is None:
            node = self._nodes.get(pod.spec.node_name)
            if node is None:
                return
            tracked = self.tracked[key] = TrackedPod(pod, node.name)
            node.pods.add(key)
        tracked.pod, tracked.raw, tracked.version = pod, raw, version
        tracked.script = self._script(tracked, pod)
        controller = controller_of(pod)
        tracked.owner = controller.uid if controller is not None else pod.uid
        self.dirty[key] = None

    def handle_deleted(self, key: str) -> None:
        """Handles a deleted pod."""
        tracked = self.tracked.pop(key, None)
        if tracked is None:
            return
        self._give_back(tracked)
        self._stop_using(tracked, 0.0)
        if self._programs is not None and tracked.run is not None:
            self._programs.forget(tracked.uid, tracked.run.attempts)
        self._timers.cancel(("pod", key))
        self.dirty.pop(key, None)
        self._nodes.by_name[tracked.node_name].pods.discard(key)

    def forget_missing(self, present: set[str]) -> None:
        """Forgets the pods whose keys are not in `present`, the keys of a list."""
        for key in [key for key in self.tracked if key not in present]:
            self.handle_deleted(key)

    def wake(self, nodes: Iterable[str]) -> None:
        """Makes all pods of these nodes due, because the nodes are no longer silent."""
        for name in nodes:
            self.dirty.update(dict.fromkeys(sorted(self._nodes.by_name[name].pods)))

    def wake_waiting(self, node: str) -> None:
        """Makes the pods of a node due that wait for its volumes to be attached."""
        for key in sorted(self._nodes.by_name[node].pods):
            mounts = self.tracked[key].mounts
            if mounts is not None and not mounts.mounted:
                self.dirty[key] = None

    def wake_users(self, claims: Iterable[str]) -> None:
        """Makes the pods due that wait for the volumes of these claims."""
        for claim in claims:
            for key in sorted(self._waiting.get(claim, ())):
                self.dirty[key] = None

    def _script(self, tracked: TrackedPod, pod: Pod) -> PodScript:
        script, faults = scripts.of_pod(pod.annotations, self._stages.for_pod(pod))
        if tracked.run is None:
            for fault in faults:
                self._recorder(tracked.node_name).record_pod_event(
                    pod, "Warning", "InvalidSimulation", str(fault)
                )
        return script

    # --- advancing pods

    def play(self, now: float, fence: Fence | None) -> None:
        """Advances up to BATCH due pods to `now`, and writes the statuses that have changed."""
        keys = list(islice(self.dirty, BATCH))
        for key in keys:
            del self.dirty[key]
        pods = [self.tracked[key] for key in keys if key in self.tracked]
        # Pods that were admitted before a restart come first, so that their room is not given away.
        pods.sort(key=lambda t: t.run is None and t.object().status.start_time is None)
        writes: list[tuple[TrackedPod, WriteItem[Pod]]] = []
        for tracked in pods:
            item = self._play_and_log(tracked, now)
            if item is not None:
                writes.append((tracked, item))
        self.save_outputs()  # who sees that a container has ended finds its whole output
        results = self._store.write([item for _, item in writes], fence=fence)
        for (tracked, _), result in zip(writes, results, strict=True):
            self._settle(tracked, result)

    def save_outputs(self) -> None:
        """Writes what programs have written. Raises StoreUnavailable and OutOfMemory."""
        if self._programs is not None:
            self._programs.save()

    def _play_and_log(self, tracked: TrackedPod, now: float) -> WriteItem[Pod] | None:
        """Advances one pod and returns the write of its status. An error is logged."""
        try:
            return self._play(tracked, now)
        except errors.ApiError as error:
            log.warning("A pod's status was rejected", pod=tracked.key, error=error.message)
        except Exception:  # an error about one pod must not stop the others
            log.exception("A pod could not be simulated", pod=tracked.key)
        return None

    def _play(self, tracked: TrackedPod, now: float) -> WriteItem[Pod] | None:
        node = self._nodes.by_name[tracked.node_name]
        if node.silent(now):
            return None
        pod = tracked.object()
        run = tracked.run or self._admit(tracked, pod, node, now)
        if run is None:
            return None
        tracked.run = run
        seen, (pod, restarts) = pod, self._resize(tracked, pod, run, node)
        if self._programs is not None and node.object is not None:
            address = self._nodes.address_of(node)
            run.programs = self._programs.look_at(pod, run.programs, run.ips, address, node.object)
        waiting = self._wait_for_volumes(tracked, pod, run, node, now)
        held = waiting is not None
        step = worker.advance(
            pod, run, tracked.script, now, self._options.pace, held=held, resized=restarts
        )
        due = step.due if waiting is None else min(step.due, waiting.due)
        due = due if run.refusal is None else min(due, now + resizes.RETRY)
        self._timers.set(("pod", tracked.key), due)
        recorder = self._recorder(tracked.node_name)
        for event in (*step.events, *(waiting.events if waiting is not None else ())):
            recorder.record_pod_event(pod, *event)
        status = statuses.status_of(pod, run, now, self._nodes.address_of(node))
        if run.over:
            self._give_back(tracked)
            self._stop_using(tracked, now)
        pod = seen
        item = self._store.build_update(
            pod.with_status(status), pod, subresource=Subresource.STATUS
        )
        if item is None and pod.deleting and run.over:
            item = self._removal(tracked, pod)
        if item is None and tracked.raw:
            tracked.pod = None
        return item

    def _resize(
        self, tracked: TrackedPod, pod: Pod, run: PodRun, node: SimulatedNode
    ) -> tuple[Pod, Sequence[str]]:
        """Returns the pod with the resources that it gets, and the containers to restart."""
        step = resizes.resize(pod, run, lambda: self._uncount(tracked), node.object)
        if step.is_changed:
            self._uncount(tracked)
            self._count(tracked, self._count_requests(step.pod))
        if step.news is not None:
            reason = resizing.EVENTS[step.news.reason]
            self._recorder(node.name).record_pod_event(pod, "Warning", reason, step.news.message)
        return step.pod, step.restarts

    # --- volumes

    def _wait_for_volumes(
        self, tracked: TrackedPod, pod: Pod, run: PodRun, node: SimulatedNode, now: float
    ) -> Waiting | None:
        """Returns why the pod waits for its claims, None if it does not or has ended."""
        if run.over or not has_claims(pod):
            return None
        mounts = tracked.mounts
        if mounts is None:
            mounts = tracked.mounts = PodMounts(now, mounted=bool(run.attempts))
        volumes = find_volumes(pod, self._storage)
        self._use(mounts, node, tuple(v.unique_name for v in volumes if v.unique_name), now)
        if mounts.mounted:
            return None
        waiting = wait_for(mounts, volumes, node.object, now)
        for volume in volumes:
            if waiting is None:
                self._waiting.get(volume.claim, set()).discard(tracked.key)
            else:
                self._waiting.setdefault(volume.claim, set()).add(tracked.key)
        return waiting

    def _use(
        self, mounts: PodMounts, node: SimulatedNode, names: tuple[str, ...], now: float
    ) -> None:
        """Sets which attached volumes the pod uses, and has its node report a change.

        What a pod has mounted it uses until it ends.
        """
        if mounts.mounted:
            names = tuple(dict.fromkeys((*mounts.in_use, *names)))
        if names == mounts.in_use:
            return
        before = set(node.volumes)
        node.volumes.subtract(mounts.in_use)
        node.volumes.update(names)
        node.volumes += Counter()  # without those that no pod uses
        mounts.in_use = names
        if set(node.volumes) != before:
            self._timers.set(("report", node.name), now)

    def _stop_using(self, tracked: TrackedPod, now: float) -> None:
        """Gives up the volumes of a pod that has ended, or that is gone."""
        if tracked.mounts is None:
            return
        for volume in find_volumes(tracked.object(), self._storage):
            waiting = self._waiting.get(volume.claim, set())
            waiting.discard(tracked.key)
            if not waiting:
                self._waiting.pop(volume.claim, None)
        tracked.mounts.mounted = False
        self._use(tracked.mounts, self._nodes.by_name[tracked.node_name], (), now)

    def _removal(self, tracked: TrackedPod, pod: Pod) -> WriteItem[Pod] | None:
        return self._store.build_delete(pod, replace(_NOW, uid=tracked.uid))

    def _settle(self, tracked: TrackedPod, result: WriteResult[Pod]) -> None:
        if not result.ok:  # another write was faster; the pod advances again with that version
            return
        if result.item.op == "delete":
            self.handle_deleted(tracked.key)
            return
        pod = result.get_stored()
        tracked.pod, tracked.raw, tracked.version = pod, b"", int(result.detail)
        if pod.deleting and tracked.run is not None and tracked.run.over:
            self.dirty[tracked.key] = None  # its final status is written: delete it

    # --- admission

    def _admit(
        self, tracked: TrackedPod, pod: Pod, node: SimulatedNode, now: float
    ) -> PodRun | None:
        """Returns the run of a pod that is seen for the first time.

        Returns None if the pod has to wait for its Node object or for an address.
        """
        asked = self._count_requests(pod)
        if pod.status.start_time is not None or pod.status.phase in TERMINAL:
            run = recovery.recover_run(pod, tracked.script, now, self._options.pace)
            if not run.over:
                self._count(tracked, asked)
                self._addresses.occupy(node.cidrs(), run.ips)
                tracked.addresses = run.ips
            if run.ips or run.over or pod.spec.host_network:
                return run
            return self._with_address(tracked, run, pod, node, now)
        if node.object is None:
            return None  # a kubelet admits no pods without its Node object
        rejection = check_predicates(pod, asked, self._usage_of(node.name), node.object)
        run = begin(pod, now)
        if rejection is not None:
            self._recorder(tracked.node_name).record_pod_event(
                pod, "Warning", rejection.reason, rejection.message
            )
            run.rejected = run.over = True
            run.failure = (rejection.reason, rejection.message)
            return run
        placed = self._with_address(tracked, run, pod, node, now)
        if placed is not None:
            self._count(tracked, asked)
        return placed

    def _with_address(
        self, tracked: TrackedPod, run: PodRun, pod: Pod, node: SimulatedNode, now: float
    ) -> PodRun | None:
        if pod.spec.host_network:
            return run
        ips = self._addresses.take(node.cidrs())
        if ips:
            tracked.addresses = run.ips = ips
            return run
        text = "Failed to create pod sandbox: no free address in the node's pod range (simulated)"
        self._recorder(tracked.node_name).record_pod_event(
            pod, "Warning", "FailedCreatePodSandBox", text
        )
        self._timers.set(("pod", tracked.key), now + SANDBOX_RETRY)
        return None

    def _count_requests(self, pod: Pod) -> NodeUsage:
        """Returns what a pod requests. Pods with equal requests share one object."""
        usage = NodeUsage.of([pod])
        key = (frozenset(usage.requests.items()), tuple(usage.ports))
        return self._alike.setdefault(key, usage)

    def _usage_of(self, node: str) -> NodeUsage:
        return self._taken.setdefault(node, NodeUsage())

    def _count(self, tracked: TrackedPod, asked: NodeUsage) -> None:
        tracked.taken = asked
        self._usage_of(tracked.node_name).add(asked)

    def _uncount(self, tracked: TrackedPod) -> NodeUsage:
        """Returns what the node's other pods occupy, which no longer includes this pod's."""
        usage = self._usage_of(tracked.node_name)
        if tracked.taken is not None:
            usage.subtract(tracked.taken)
            tracked.taken = None
        return usage

    def _give_back(self, tracked: TrackedPod) -> None:
        self._uncount(tracked)
        self._addresses.release(tracked.addresses)
        tracked.addresses = ()
