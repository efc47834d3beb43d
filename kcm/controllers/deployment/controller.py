"""Deployment: rolls out changes of a pod template through ReplicaSets.

A sync takes one step: it creates the ReplicaSet of the present template, or moves pods from old
ReplicaSets to it as far as the strategy allows. The changes of the ReplicaSets cause the next sync.

Departure: the annotation `deprecated.deployment.rollback.to` of extensions/v1beta1 is ignored,
since `kubectl rollout undo` patches the template.

Source: pkg/controller/deployment/{deployment_controller,sync,rolling,recreate,progress}.go,
Kubernetes 1.33.
"""

from __future__ import annotations

from collections.abc import Iterable
from functools import partial
from typing import Any

from pydantic import Field

from kcm.api.apps_v1 import Deployment, DeploymentStatus, ReplicaSet, ReplicaSetSpec
from kcm.api.core_v1 import Pod
from kcm.apimachinery.meta_v1 import KubeObject, LabelSelector, ObjectMeta
from kcm.apimachinery.ownership import controller_of, new_controller_ref
from kcm.controllers.deployment import rolling, scaling, status
from kcm.controllers.deployment.bounds import is_rolling, wanted_replicas
from kcm.controllers.deployment.revisions import (
    HASH,
    REVISION,
    annotations_of_new,
    find_new_set,
    name_of_set,
    oldest_first,
    revision_of,
    template_hash,
)
from kcm.controllers.deployment.rollout import Draft, Rollout, is_scaled, sizes_of
from kcm.controllers.deployment.status import Sets
from kcm.helpers.owners import claim, list_controlled, own_and_orphans, selector_of
from kcm.helpers.pods import is_terminal
from kcm.sdk import (
    Change,
    Controller,
    Create,
    Delete,
    Options,
    Outcome,
    Plan,
    UpdateStatus,
    View,
    Watch,
    own_key,
    owner_keys,
)

_UNLIMITED = 2**31 - 1


class DeploymentOptions(Options):
    """The options of the Deployment controller."""

    concurrent_deployment_syncs: int = Field(
        default=5,
        ge=1,
        description="The number of deployment objects that are allowed to sync concurrently. "
        "Larger number = more responsive deployments, but more CPU (and network) load",
    )


class DeploymentController(Controller):
    """Creates, scales and deletes the ReplicaSets of Deployments. A key is a Deployment."""

    name = "deployment-controller"
    short_name = "deployment"
    group = "workloads"
    options_type = DeploymentOptions
    options: DeploymentOptions

    def watches(self) -> tuple[Watch[Any], ...]:
        return (
            Watch(Deployment, own_key),
            Watch(ReplicaSet, owner_keys(Deployment)),
            Watch(Pod, deployment_of_last_pod),
        )

    def concurrent_syncs(self) -> int:
        return self.options.concurrent_deployment_syncs

    def reconcile(self, key: str, view: View) -> Plan:
        deployment = view.lister(Deployment).find(key)
        selector = selector_of(deployment) if deployment is not None else None
        if deployment is None or selector is None:
            return Plan()
        if selector.empty:
            return _report_selecting_all(deployment)
        claimed = claim(deployment, selector, own_and_orphans(deployment, ReplicaSet, view))
        sync = _DeploymentSync(deployment, claimed.objects, view)
        sync.run()
        return sync.plan(Plan().then(*claimed.writes, essential=True))


def deployment_of_last_pod(change: Change, view: View) -> Iterable[str]:
    """Yields the Recreate Deployment whose last running pod was deleted, as it may now create new
    ones.
    """
    if change.new is not None:
        return
    pods_owner = controller_of(change.object)
    if pods_owner is None or pods_owner.kind != "ReplicaSet":
        return
    rs = view.lister(ReplicaSet).find(f"{change.object.namespace}/{pods_owner.name}")
    owner = controller_of(rs) if rs is not None and rs.uid == pods_owner.uid else None
    if owner is None or owner.kind != "Deployment":
        return
    deployment = view.lister(Deployment).find(f"{change.object.namespace}/{owner.name}")
    if deployment is None or deployment.uid != owner.uid or is_rolling(deployment):
        return
    for sibling in list_controlled(deployment, ReplicaSet, view):
        if any(not is_terminal(pod) for pod in list_controlled(sibling, Pod, view)):
            return  # another pod is left
    yield deployment.key


def _report_selecting_all(deployment: Deployment) -> Plan:
    plan = Plan().record(
        deployment,
        "SelectingAll",
        "This deployment is selecting all pods. A non-empty selector is required.",
        warning=True,
    )
    generation = deployment.metadata.generation
    if (deployment.status.observed_generation or 0) < (generation or 0):
        seen = deployment.status.replace(observed_generation=generation)
        plan.then(UpdateStatus(deployment.with_status(seen), deployment))
    return plan


class _DeploymentSync:
    """Builds the plan of one sync of one Deployment."""

    def __init__(self, deployment: Deployment, sets: list[ReplicaSet], view: View) -> None:
        self._deployment = deployment
        self._sets = sets
        self._view = view
        self._status = (
            deployment.status if deployment.deleting else status.with_pause(deployment, view.now)
        )
        self._annotations = dict(deployment.annotations)
        self._to_delete: list[ReplicaSet] = []
        self._rolls = False  # whether the status reports progress
        present = find_new_set(deployment, sets)
        old = sorted((rs for rs in sets if rs is not present), key=oldest_first)
        self._rollout = Rollout(deployment, [Draft.of(rs) for rs in old])
        if present is not None:
            self._rollout.new = Draft.of(present)

    def run(self) -> None:
        """Decides on the changes of the ReplicaSets: a scaling, or a step of the rollout."""
        deployment, rollout = self._deployment, self._rollout
        if deployment.deleting:
            return
        if rollout.new is not None:
            self._revise(rollout.new)
        if deployment.spec.paused:
            scaling.scale(rollout)
            self._clean_up()
        elif is_scaled(rollout):
            scaling.scale(rollout)
        else:
            self._rolls = True
            self._roll()

    def _roll(self) -> None:
        rollout = self._rollout
        if is_rolling(self._deployment):
            if rollout.new is None and not self._create():
                return
            rolling.roll(rollout)
        elif rolling.recreate(rollout, self._pods()):
            if rollout.new is None and not self._create():
                return
            assert rollout.new is not None
            rollout.scale(rollout.new, wanted_replicas(self._deployment))
        if status.is_complete(self._deployment, self._deployment.status):
            self._clean_up()

    def _pods(self) -> Iterable[Pod]:
        for draft in self._rollout.all:
            yield from list_controlled(draft.rs, Pod, self._view)

    # --- the ReplicaSet of the present template

    def _revision(self) -> int:
        return max((revision_of(d.rs.annotations) for d in self._rollout.old), default=0) + 1

    def _revise(self, new: Draft) -> None:
        """Updates the draft of the existing new ReplicaSet and the Deployment's revision
        annotation.

        Sets the condition Progressing if it is missing.
        """
        deployment = self._deployment
        new.annotations = annotations_of_new(
            deployment, new.annotations, self._revision(), exists=True
        )
        new.min_ready_seconds = deployment.spec.min_ready_seconds
        self._annotations[REVISION] = new.annotations[REVISION]
        if status.has_deadline(deployment) and not status.condition_of(
            self._status, status.PROGRESSING
        ):
            self._set_progress("FoundNewReplicaSet", f'Found new replica set "{new.rs.name}"')

    def _set_progress(self, reason: str, message: str) -> None:
        condition = status.condition(status.PROGRESSING, "True", reason, message, self._view.now)
        self._status = status.with_condition(self._status, condition)

    def _create(self) -> bool:
        """Adds a draft of the new ReplicaSet.

        Returns False if an object has its name. The collision count then gives the next sync
        another name.
        """
        deployment = self._deployment
        rs = self._new_set()
        if self._view.lister(ReplicaSet).find(rs.key) is not None:
            collisions = self._status.collision_count or 0
            self._status = self._status.replace(collision_count=collisions + 1)
            return False
        draft = Draft.of(rs, born=True)
        self._rollout.new = draft
        draft.replicas = 0
        self._rollout.scale(draft, rolling.size_of_new(self._rollout, draft))
        self._annotations[REVISION] = draft.annotations[REVISION]
        if status.has_deadline(deployment):
            self._set_progress("NewReplicaSetCreated", f'Created new replica set "{rs.name}"')
        return True

    def _new_set(self) -> ReplicaSet:
        deployment, spec = self._deployment, self._deployment.spec
        value = template_hash(spec.template, deployment.status.collision_count)
        labels = {**(spec.template.metadata.labels or {}), HASH: value}
        template = spec.template.replace(metadata=spec.template.metadata.replace(labels=labels))
        selector = spec.selector or LabelSelector()
        chosen = {**(selector.match_labels or {}), HASH: value}
        present = sizes_of(deployment)
        return ReplicaSet(
            metadata=ObjectMeta(
                name=name_of_set(deployment.name, value),
                namespace=deployment.namespace,
                labels=labels,
                annotations=annotations_of_new(deployment, present, self._revision(), exists=False),
                owner_references=[new_controller_ref(deployment)],
            ),
            spec=ReplicaSetSpec(
                replicas=0,
                min_ready_seconds=spec.min_ready_seconds,
                selector=selector.replace(match_labels=chosen),
                template=template.model_copy(deep=True),
            ),
        )

    # --- old ReplicaSets

    def _clean_up(self) -> None:
        """Deletes empty old ReplicaSets beyond revisionHistoryLimit, the oldest revisions first."""
        limit = self._deployment.spec.revision_history_limit
        if limit is None or limit == _UNLIMITED:
            return
        alive = [d for d in self._rollout.old if not d.rs.deleting]
        alive.sort(key=lambda draft: (revision_of(draft.rs.annotations), oldest_first(draft.rs)))
        for draft in alive[: max(0, len(alive) - limit)]:
            if _is_empty(draft):
                self._to_delete.append(draft.rs)
                self._rollout.old.remove(draft)

    # --- the plan

    def plan(self, plan: Plan) -> Plan:
        """Adds the writes, the status and the Events to a plan, and returns it."""
        created = [w for d in self._rollout.all for w in d.writes if isinstance(w, Create)]
        changed = [w for d in self._rollout.all for w in d.writes if not isinstance(w, Create)]
        plan.then(*created, essential=False)
        plan.then(*changed)
        plan.then(*(Delete(rs) for rs in self._to_delete))
        plan.events += self._rollout.events
        computed = self._compute_status()
        plan.status_after = partial(
            _update_status, self._deployment, computed, self._annotations, self._view
        )
        if self._rolls:
            plan.requeue_after = status.next_check(self._deployment, computed, self._view.now)
        return plan

    def _compute_status(self) -> DeploymentStatus:
        gone = {rs.uid for rs in self._to_delete}
        new = self._rollout.new
        sets = Sets([rs for rs in self._sets if rs.uid not in gone], new.rs if new else None)
        computed = status.count_replicas(self._deployment, self._status, sets, self._view.now)
        if not self._rolls:
            return computed
        return status.with_progress(self._deployment, self._status, computed, sets, self._view.now)


def _is_empty(draft: Draft) -> bool:
    rs = draft.rs
    seen = (rs.status.observed_generation or 0) >= (rs.metadata.generation or 0)
    return not rs.status.replicas and not draft.replicas and seen


def _update_status(
    deployment: Deployment,
    computed: DeploymentStatus,
    annotations: dict[str, str],
    view: View,
    outcome: Outcome,
) -> UpdateStatus | None:
    """Returns the status update, or None if nothing changes.

    If the new ReplicaSet could not be created, the condition Progressing says so.
    """
    for failure in outcome.failures:
        if isinstance(failure.write, Create) and status.has_deadline(deployment):
            message = (
                f'Failed to create new replica set "{failure.write.obj.name}": {failure.error}'
            )
            condition = status.condition(
                status.PROGRESSING, "False", "ReplicaSetCreateError", message, view.now
            )
            computed = status.with_condition(deployment.status, condition)
            annotations = dict(deployment.annotations)
    new: KubeObject = deployment.with_status(computed)
    if annotations != deployment.annotations:
        new = new.with_metadata(annotations=annotations)
    if new == deployment:
        return None
    return UpdateStatus(new, deployment)
