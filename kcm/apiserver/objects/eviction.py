"""The subresource pods/eviction: a delete that respects PodDisruptionBudgets.

Each of a budget's allowed disruptions is used once, however many clients evict at the same time. A
pod that a budget counts as healthy is deleted only if that uses one of its disruptions. A pod that
becomes ready meanwhile is not deleted as an unready one.

Source: pkg/registry/core/pod/storage/eviction.go, Kubernetes 1.33.
"""

from __future__ import annotations

from dataclasses import replace
from datetime import datetime

from kcm import errors
from kcm.api.core_v1 import Pod, PodCondition
from kcm.api.policy_v1 import PodDisruptionBudget
from kcm.api.scheme import Resource
from kcm.apimachinery.labels import Selector
from kcm.apimachinery.meta_v1 import Condition, KubeObject
from kcm.apiserver.http.bodies import reading, structs
from kcm.apiserver.http.responses import ApiRequest, Response, json_response
from kcm.apiserver.http_errors import DisruptionRefused
from kcm.apiserver.objects import admission, status, verbs
from kcm.store import DeleteOptions, FieldManager, Store, Subresource
from kcm.store.writes.deletion import check_preconditions

MAX_DISRUPTED_PODS = 2000  # evictions that the budget's controller has not confirmed yet
ALLOWED = "DisruptionAllowed"
TARGET = "DisruptionTarget"
_ATTEMPTS = 20  # attempts at writes that conflict with others', as upstream's EvictionsRetry
_SOON = 10  # seconds after which an eviction that came too early may be retried
_ENDED = ("Succeeded", "Failed")


def evict(store: Store, request: ApiRequest) -> Response:
    """Handles a POST of an Eviction: deletes the pod if its disruption budgets allow that.

    Raises NotFound, Conflict, Forbidden, BadRequest and DisruptionRefused.
    """
    eviction = reading.read_struct(request, structs.Eviction)
    if eviction.metadata.name and eviction.metadata.name != request.info.name:
        raise errors.BadRequest("name in URL does not match name in Eviction object")
    eviction = admission.admit_struct(store, request, eviction, "policy/v1")
    options, dry = _options(request, eviction)
    _Eviction(store, request.info.resource, request.info.key, options, dry).run()
    return json_response(status.success(), 201)


def _options(request: ApiRequest, eviction: structs.Eviction) -> tuple[DeleteOptions, bool]:
    options = eviction.delete_options or structs.DeleteOptions()
    if request.dry_run:
        if options.dry_run and options.dry_run != ["All"]:
            raise errors.BadRequest(
                "Non-matching dry-run options in request and content: "
                f"[All] and [{' '.join(options.dry_run)}]"
            )
        options.dry_run = ["All"]
    return reading.convert_delete_options(options)


class _Eviction:
    """One request to evict a pod."""

    def __init__(
        self, store: Store, resource: Resource, key: str, options: DeleteOptions, dry: bool
    ) -> None:
        self._store = store
        self._resource = resource
        self._key = key
        self._options = options
        self._dry = dry

    def run(self) -> None:
        """Deletes the pod. Uses one of its budget's disruptions if it needs one."""
        pod = self._delete_unprotected()
        if pod is None:
            return
        budget = self._budget(pod)
        if budget is None:
            self._delete(self._options)
            return
        if not _is_ready(pod) and _allows_unready(budget):
            self._delete_unready(pod, budget.name)
            return
        self._take(budget, pod)
        self._delete(self._options)

    def _delete_unprotected(self) -> Pod | None:
        """Deletes the pod and returns None, or returns the pod if budgets protect it.

        Pods that have ended, are pending or are being deleted are not protected.
        """
        pinned = bool(self._options.resource_version)
        for attempt in range(_ATTEMPTS):
            pod = self._store.get(Pod.resource, self._key)
            ended = pod.status.phase in _ENDED or pod.deleting
            if not ended and pod.status.phase != "Pending":
                return pod
            # A pending pod may become ready, and so protected, before it is deleted.
            version = self._options.resource_version if ended or pinned else _version(pod)
            try:
                self._delete(replace(self._options, resource_version=version))
            except errors.Conflict:
                if pinned or attempt == _ATTEMPTS - 1:
                    raise
            else:
                return None
        return None

    def _budget(self, pod: Pod) -> PodDisruptionBudget | None:
        budgets = []
        resource = PodDisruptionBudget.resource
        for budget in self._store.in_namespace(resource, pod.namespace):
            selector = Selector.from_label_selector(budget.spec.selector)
            if not selector.empty and selector.matches(pod.metadata.labels):
                budgets.append(budget)
        if len(budgets) > 1:
            raise errors.ApiError(
                "This pod has more than one PodDisruptionBudget, which the eviction subresource "
                "does not support."
            )
        return budgets[0] if budgets else None

    def _take(self, budget: PodDisruptionBudget, pod: Pod) -> None:
        """Uses one of the budget's disruptions. Checks again if others have written the budget."""
        resource = PodDisruptionBudget.resource
        if self._dry:
            _take_disruption(budget, pod.name, self._store.clock.now())
            return
        self._store.modify(
            resource,
            budget.key,
            lambda stored: _take_disruption(stored, pod.name, self._store.clock.now()),
            subresource=Subresource.STATUS,
            manager=FieldManager(""),
        )

    def _delete_unready(self, pod: Pod, budget: str) -> None:
        version = self._options.resource_version or _version(pod)
        try:
            self._delete(replace(self._options, resource_version=version))
        except errors.Conflict:
            if self._options.resource_version:
                raise
            raise _too_early(budget) from None

    def _delete(self, options: DeleteOptions) -> None:
        """Gives the pod the condition DisruptionTarget, then deletes it."""
        if not self._dry:
            disrupted = self._set_disrupted(options)
            if options.resource_version:
                options = replace(options, resource_version=_version(disrupted))
        verbs.delete_object(self._store, self._resource, self._key, options, dry=self._dry)

    def _set_disrupted(self, options: DeleteOptions) -> KubeObject:
        def change(old: Pod) -> Pod:
            check_preconditions(old, self._resource, options)
            return _with_target(old, self._store.clock.now())

        return self._store.modify(
            Pod.resource,
            self._key,
            change,
            subresource=Subresource.STATUS,
            manager=FieldManager(""),
        )


def _version(pod: KubeObject) -> str:
    return pod.metadata.resource_version or ""


def _is_ready(pod: Pod) -> bool:
    return any(c.type == "Ready" and c.status == "True" for c in pod.status.conditions or ())


def _allows_unready(budget: PodDisruptionBudget) -> bool:
    """Reports whether pods that are not ready may be deleted without using a disruption."""
    if budget.spec.unhealthy_pod_eviction_policy == "AlwaysAllow":
        return True
    status_ = budget.status
    return status_.current_healthy >= status_.desired_healthy > 0


def _take_disruption(obj: PodDisruptionBudget, pod: str, now: datetime) -> PodDisruptionBudget:
    """Returns the budget with one allowed disruption less.

    Raises DisruptionRefused and Forbidden. `pod` is the name of the evicted pod.
    """
    _check(obj)
    left = obj.status.disruptions_allowed - 1
    changed = obj.status.replace(
        disruptions_allowed=left,
        disrupted_pods={**(obj.status.disrupted_pods or {}), pod: now.replace(microsecond=0)},
    )
    if left == 0:
        condition = Condition(
            type=ALLOWED,
            status="False",
            reason="InsufficientPods",
            message="",
            observed_generation=obj.status.observed_generation,
            last_transition_time=now,
        )
        before = next((c for c in changed.conditions or () if c.type == ALLOWED), None)
        if before is not None and before.status == "False":
            condition = condition.replace(last_transition_time=before.last_transition_time)
        others = [c for c in changed.conditions or () if c.type != ALLOWED]
        changed = changed.replace(conditions=[*others, condition])
    return obj.with_status(changed)


def _check(budget: PodDisruptionBudget) -> None:
    status = budget.status
    if (status.observed_generation or 0) < (budget.metadata.generation or 0):
        raise _too_early(budget.name)
    if status.disruptions_allowed < 0:
        raise _forbidden(budget, "pdb disruptions allowed is negative")
    if len(status.disrupted_pods or ()) > MAX_DISRUPTED_PODS:
        raise _forbidden(
            budget,
            "DisruptedPods map too big - too many evictions not confirmed by PDB controller",
        )
    if status.disruptions_allowed == 0:
        raise DisruptionRefused.because(
            f"The disruption budget {budget.name} needs {status.desired_healthy} healthy pods "
            f"and has {status.current_healthy} currently"
        )


def _too_early(budget: str) -> DisruptionRefused:
    return DisruptionRefused.because(
        f"The disruption budget {budget} is still being processed by the server.", _SOON
    )


def _forbidden(budget: PodDisruptionBudget, why: str) -> errors.Forbidden:
    resource = "poddisruptionbudget.policy"
    return errors.Forbidden(
        f'{resource} "{budget.name}" is forbidden: {why}', resource=resource, name=budget.name
    )


def _with_target(pod: Pod, now: datetime) -> Pod:
    """Returns the pod with the condition DisruptionTarget, which says why it is deleted."""
    condition = PodCondition(
        type=TARGET,
        status="True",
        reason="EvictionByEvictionAPI",
        message="Eviction API: evicting",
        last_transition_time=now.replace(microsecond=0),
    )
    before = next((c for c in pod.status.conditions or () if c.type == TARGET), None)
    if before is not None and before.status == "True":
        condition = condition.replace(last_transition_time=before.last_transition_time)
    others = [c for c in pod.status.conditions or () if c.type != TARGET]
    return pod.with_status(pod.status.replace(conditions=[*others, condition]))
