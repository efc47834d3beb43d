"""One pass of a scheduler: turns what the caches have into a plan.

Guarantees: a pass tries at most `PASS_PODS` pods, so that it is short and bindings are written
soon. A pod whose scheduling raises an error does not keep others from being tried.

Source: pkg/scheduler/schedule_one.go, Kubernetes 1.33.
"""

from __future__ import annotations

import json
import random
import secrets
import threading
from collections.abc import Sequence
from datetime import datetime

import structlog

from kcm.api.core_v1 import Namespace, Node, PersistentVolumeClaim, Pod
from kcm.api.policy_v1 import PodDisruptionBudget
from kcm.api.storage_v1 import VolumeAttachment
from kcm.apimachinery.meta_v1 import KubeObject
from kcm.controllers.scheduler import decisions, status
from kcm.controllers.scheduler.metrics import PENDING, SchedulerCounts
from kcm.controllers.scheduler.nodeinfo import NodeInfo, PodInfo
from kcm.controllers.scheduler.options import SchedulerOptions
from kcm.controllers.scheduler.owners import OwnerSelectors
from kcm.controllers.scheduler.placer import Placer
from kcm.controllers.scheduler.plugins.volumes import VolumeDecision, VolumeRule
from kcm.controllers.scheduler.preemption import Budgets, Preemption, Preemptor
from kcm.controllers.scheduler.queue import LastAttempt, SchedulingQueue, Waiting, checksum
from kcm.controllers.scheduler.snapshot import Snapshot
from kcm.controllers.scheduler.status import FitError
from kcm.controllers.scheduler.template import TemplateContext, Templates
from kcm.controllers.scheduler.volumes.view import STORAGE_KINDS, StorageView
from kcm.sdk import Event, Outcome, Plan, Update, View, Write

log = structlog.get_logger("kcm.controllers.scheduler")

PASS_PODS = 500  # pods tried in one pass; the next pass follows at once


class Scheduler:
    """Runs the passes for one scheduler name, and keeps a snapshot between them.

    It only caches what the informers have. Passes do not overlap.
    """

    def __init__(self, name: str, options: SchedulerOptions, rng: random.Random) -> None:
        self.name = name
        self.options = options
        self.rng = rng
        self.lock = threading.Lock()  # a pass whose lease has expired may still run
        self.snapshot = Snapshot()
        self.selectors = OwnerSelectors()
        context = TemplateContext(self.snapshot, options, self.selectors.selector_of)
        self.templates = Templates(context)
        self.placer = Placer(self.snapshot, self.templates, options, rng)

    def run(self, view: View) -> Plan:
        """Runs one pass and returns its plan."""
        with self.lock:
            self._update(view)
            return _Pass(self, view).run()

    def _update(self, view: View) -> None:
        position = view.position(Pod)
        versions = tuple(view.position(kind) for kind in STORAGE_KINDS)
        attachments = view.position(VolumeAttachment)
        moment = max(view.position(Node), view.position(Namespace), *versions, attachments)
        self.snapshot.update(
            position,
            view.lister(Node).list(),
            view.lister(Pod).list(),
            view.lister(Namespace).list(),
            moment,
        )
        claims = view.lister(PersistentVolumeClaim).list()
        self.snapshot.update_storage(claims, versions[1:], attachments)
        self.placer.begin_pass(StorageView(view, self.snapshot))
        if self.selectors.update(view):
            self.templates.clear()


class _Pass:
    """One pass, which collects its plan."""

    def __init__(self, scheduler: Scheduler, view: View) -> None:
        self._scheduler = scheduler
        self._snapshot = scheduler.snapshot
        self._placer = scheduler.placer
        self._view = view
        self._now: datetime = view.now
        self._stamp = secrets.token_hex(8)  # no other pass has it, whatever its rng is
        self._counts = SchedulerCounts(scheduler.name)
        self._waiting = Waiting()
        self._volumes: list[Write] = []
        self._users: dict[str, str] = {}  # pods by the uids of the volumes and claims written
        self._bindings: list[Write] = []
        self._evictions: list[Write] = []
        self._conditions: list[Write] = []
        self._events: list[Event] = []
        self._bound: set[str] = set()
        self._evicted: set[str] = set()
        self._failed: dict[str, LastAttempt] = {}
        self._preemptor: Preemptor | None = None

    def run(self) -> Plan:
        pods = [
            info
            for info in self._snapshot.pending.values()
            if not info.deleting and info.source.spec.scheduler_name == self._scheduler.name
        ]
        queue = SchedulingQueue(self._snapshot, self._scheduler.options, self._now)
        self._waiting = queue.sort(pods, self._view.memory)
        for info in self._waiting.ready[:PASS_PODS]:
            self._try(info)
        return self._plan()

    def _try(self, info: PodInfo) -> None:
        try:
            fit_error = self._place(info)
        except Exception as error:  # one pod must not stop the others
            log.warning("a pod could not be scheduled", pod=info.key, exc_info=error)
            self._fail(info, decisions.SCHEDULER_ERROR, f"{type(error).__name__}: {error}", ())
            self._counts.attempt("error")
            return
        if fit_error is not None:
            self._handle_fit_error(info, fit_error)

    def _place(self, info: PodInfo) -> FitError | None:
        """Binds the pod, or returns the fit error if no node is feasible."""
        placement = self._placer.place(info)
        if isinstance(placement, FitError):
            return placement
        rule = self._placer.volume_rule(info)
        if isinstance(rule, VolumeRule) and rule.waits:
            self._wait_for_volumes(info, rule.decide(placement), placement)
            return None
        write = decisions.bind_to(info, placement, self._snapshot.position, self._stamp, self._now)
        self._snapshot.assume(info, placement)
        self._bindings.append(write)
        self._bound.add(info.uid)
        return None

    def _wait_for_volumes(self, info: PodInfo, decision: VolumeDecision, node: NodeInfo) -> None:
        """Starts to bind the pod's claims on the node, and reserves its place there.

        The pod is tried again when its claims change.
        """
        assert self._placer.storage is not None
        for volume, cached in decision.reserved:
            self._placer.storage.assume_volume(volume)
            self._write_volume(info, volume, cached)
        for claim, waiting in decision.selected:
            self._placer.storage.assume_claim(claim)
            self._write_volume(info, claim, waiting)
        self._placer.forget_rules()
        if info.nominated != node.name:
            self._conditions.append(decisions.nominate(info, node.name))
            self._snapshot.nominate(info, node.name)
        before = self._waiting.last_attempts.get(info.uid)
        # A volume that somebody else took meanwhile is an event of VolumeBinding.
        plugin = "VolumeBinding" if decision.reserved else decisions.WAITS_FOR_CLAIMS
        attempts = 0 if before is None else before.attempts
        self._failed[info.uid] = self._attempt(info, attempts, (plugin,))

    def _write_volume(self, info: PodInfo, new: KubeObject, old: KubeObject) -> None:
        self._volumes.append(Update(new, old))
        self._users[old.uid] = info.uid

    def _attempt(self, info: PodInfo, attempts: int, plugins: Sequence[str]) -> LastAttempt:
        return LastAttempt(
            attempts=attempts,
            since=self._now.timestamp(),
            position=self._snapshot.moment,
            checksum=checksum(info),
            plugins=tuple(plugins),
        )

    def _handle_fit_error(self, info: PodInfo, fit_error: FitError) -> None:
        self._counts.attempt("unschedulable")
        if not fit_error.statuses:
            self._fail(info, decisions.UNSCHEDULABLE, status.NO_NODES, ("NodeName",))
            return
        self._counts.preemption()
        preemption = self._preemption().preempt(info, fit_error)
        if isinstance(preemption, Preemption):
            self._preempt(info, preemption)
            self._fail(
                info,
                decisions.UNSCHEDULABLE,
                fit_error.text,
                fit_error.plugins,
                preemption.node.name,
            )
            return
        message = f"{fit_error.text} preemption: {preemption.text}"
        nominated = "" if preemption.gives_up else None
        self._fail(info, decisions.UNSCHEDULABLE, message, fit_error.plugins, nominated)

    def _preemption(self) -> Preemptor:
        if self._preemptor is None:
            budgets = Budgets(self._view.lister(PodDisruptionBudget).list())
            scheduler = self._scheduler
            self._preemptor = Preemptor(self._placer, budgets, scheduler.options, scheduler.rng)
        return self._preemptor

    def _preempt(self, info: PodInfo, preemption: Preemption) -> None:
        fresh = [victim for victim in preemption.victims if victim.uid not in self._evicted]
        self._evicted.update(victim.uid for victim in fresh)
        victims = [pod for victim in fresh if (pod := self._alive(victim)) is not None]
        self._evictions += decisions.evict_victims(info, victims, preemption.losers, self._now)
        self._events += decisions.preemption_events(info, victims, preemption.node)
        for loser in preemption.losers:
            self._snapshot.nominate(loser, "")

    def _alive(self, victim: PodInfo) -> Pod | None:
        """Returns the victim from the cache, or None if it is gone or being deleted."""
        victim_now = self._view.lister(Pod).find(victim.key)
        return (
            None
            if victim_now is None or victim_now.uid != victim.uid or victim_now.deleting
            else victim_now
        )

    def _fail(
        self,
        info: PodInfo,
        reason: str,
        message: str,
        plugins: Sequence[str],
        nominated: str | None = None,
    ) -> None:
        """Records the failed attempt of a pod: a condition, an Event, and data for the next pass.

        `nominated` is as in `decisions.mark_unscheduled`.
        """
        write = decisions.mark_unscheduled(info, reason, message, nominated, self._now)
        if write is not None:
            self._conditions.append(write)
        self._events.append(decisions.failure_event(info, message))
        before = self._waiting.last_attempts.get(info.uid)
        attempts = 1 if before is None else before.attempts + 1
        self._failed[info.uid] = self._attempt(info, attempts, plugins)
        if nominated is not None and nominated != info.nominated:
            self._snapshot.nominate(info, nominated)

    # --- the plan

    def _plan(self) -> Plan:
        plan = Plan(events=self._events, counts=self._counts.by_series, events_after=self._report)
        plan.then(*self._volumes, optional=True)
        plan.then(*self._bindings, optional=True)
        plan.then(*self._evictions, optional=True)
        plan.then(*self._conditions, optional=True)
        plan.state = self._memory()
        plan.requeue_after = self._next()
        if self._volumes:
            plan.plan_after = self._try_again
        return plan

    def _try_again(self, outcome: Outcome) -> Plan:
        """Retries the pods at once whose volumes or claims another client has written.

        Nothing else would wake them: what the others wrote may not concern any scheduler.
        """
        overtaken = {
            self._users[failure.write.old.uid]
            for failure in outcome.failures
            if isinstance(failure.write, Update) and failure.write.old.uid in self._users
        }
        plan = Plan(requeue_after=self._next())
        if overtaken:
            plan.state = {k: v for k, v in self._memory().items() if k not in overtaken}
            plan.requeue_after = 0.0
        return plan

    def _memory(self) -> dict[str, str]:
        """Returns the new controller memory: the last attempt of each pod that was not bound.

        PENDING has the number of pods by queue.
        """
        waiting = self._waiting
        kept = {uid: str(last) for uid, last in waiting.last_attempts.items()}
        kept |= {uid: str(last) for uid, last in self._failed.items()}
        counts = dict(waiting.counts)
        counts["active"] = max(len(waiting.ready) - PASS_PODS, 0)
        counts["unschedulable"] += len(self._failed)
        kept[PENDING] = json.dumps(counts)
        return {name: text for name, text in kept.items() if name not in self._bound}

    def _next(self) -> float | None:
        """Returns the seconds until the next pass, None if it only depends on changes."""
        if len(self._waiting.ready) > PASS_PODS:
            return 0.0
        dues = [] if self._waiting.next_due is None else [self._waiting.next_due]
        if self._bindings:
            dues.append(1.0)  # bindings that fail have to be tried again
        if self._failed:
            dues.append(self._scheduler.options.pod_max_in_unschedulable_pods_duration)
        return max(min(dues), 0.01) if dues else None

    def _report(self, outcome: Outcome) -> list[Event]:
        """Counts the pods that were bound, and returns their Events.

        Pods whose binding failed are tried again by the next pass.
        """
        events = []
        for pod, event in decisions.scheduled_events(outcome):
            events.append(event)
            before = self._waiting.last_attempts.get(pod.uid)
            created = pod.metadata.creation_timestamp or self._now
            self._counts.attempt("scheduled")
            self._counts.scheduled(
                1 if before is None else before.attempts + 1,
                (self._now - created).total_seconds(),
            )
        return events
