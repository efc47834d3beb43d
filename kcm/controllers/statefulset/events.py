"""Builds the Events of a StatefulSet about its pods and claims.

Source: recordPodEvent and recordClaimEvent in pkg/controller/statefulset/stateful_pod_control.go,
Kubernetes 1.33.
"""

from __future__ import annotations

from kcm import errors
from kcm.api.apps_v1 import StatefulSet
from kcm.api.core_v1 import PersistentVolumeClaim, Pod
from kcm.apimachinery.meta_v1 import KubeObject
from kcm.sdk import Create, Delete, Event, Failure, Outcome, Patch, Write

_VERBS: dict[type, str] = {Create: "create", Delete: "delete", Patch: "update"}


def events_after(stateful_set: StatefulSet, outcome: Outcome) -> list[Event]:
    """Returns the Events about a sync's writes."""
    return [
        event
        for event in (
            *(_event_of_success(stateful_set, write, obj) for write, obj in outcome.done),
            *(_event_of_failure(stateful_set, failure) for failure in outcome.failures),
        )
        if event is not None
    ]


def _event_of_success(stateful_set: StatefulSet, write: Write, obj: KubeObject) -> Event | None:
    verb = _VERBS.get(type(write))
    if verb is None or (not isinstance(write, Create) and obj is write.old):
        return None  # nothing was written: the object was gone or needed no change
    if isinstance(obj, Pod):
        message = f"{verb} Pod {obj.name} in StatefulSet {stateful_set.name} successful"
    elif isinstance(obj, PersistentVolumeClaim) and verb == "create":
        message = f"create Claim {obj.name} Pod {_pod_of(stateful_set, obj)} in StatefulSet "
        message += f"{stateful_set.name} success"
    else:
        return None
    return Event(stateful_set, "Normal", f"Successful{verb.capitalize()}", message)


def _event_of_failure(stateful_set: StatefulSet, failure: Failure) -> Event | None:
    write = failure.write
    obj = write.obj if isinstance(write, Create) else write.old
    verb = _VERBS.get(type(write))
    if verb is None or isinstance(failure.error, errors.AlreadyExists | errors.GuardFailed):
        return None  # the pod exists already, or it lacks a claim, which has an Event of its own
    tail = f"StatefulSet {stateful_set.name} failed error: {failure.error}"
    if isinstance(obj, Pod):
        message = f"{verb} Pod {obj.name} in {tail}"
    elif isinstance(obj, PersistentVolumeClaim):
        message = f"{verb} Claim {obj.name} for Pod {_pod_of(stateful_set, obj)} in {tail}"
    else:
        return None
    return Event(stateful_set, "Warning", f"Failed{verb.capitalize()}", message)


def _pod_of(stateful_set: StatefulSet, claim: PersistentVolumeClaim) -> str:
    return f"{stateful_set.name}-{claim.name.rpartition('-')[2]}"
