"""The Events about pods that a controller creates and deletes.

Source: RealPodControl in pkg/controller/controller_utils.go, Kubernetes 1.33.
"""

from __future__ import annotations

from kcm.api.core_v1 import Pod
from kcm.apimachinery.meta_v1 import KubeObject
from kcm.reconcile.plan import Create, Delete, Event, Outcome


def pod_write_events(owner: KubeObject, outcome: Outcome) -> list[Event]:
    """Returns one Event about `owner` for each pod whose creation or deletion succeeded or failed.

    A deletion of a pod that was already gone gives no Event.
    """
    events: list[Event] = []
    for write, obj in outcome.done:
        if isinstance(write, Create) and isinstance(obj, Pod):
            events.append(Event(owner, "Normal", "SuccessfulCreate", f"Created pod: {obj.name}"))
        elif isinstance(write, Delete) and isinstance(obj, Pod) and obj is not write.old:
            events.append(Event(owner, "Normal", "SuccessfulDelete", f"Deleted pod: {obj.name}"))
    for failure in outcome.failures:
        if isinstance(failure.write, Create) and isinstance(failure.write.obj, Pod):
            message = f"Error creating: {failure.error}"
            events.append(Event(owner, "Warning", "FailedCreate", message))
        elif isinstance(failure.write, Delete) and isinstance(failure.write.old, Pod):
            message = f"Error deleting: {failure.error}"
            events.append(Event(owner, "Warning", "FailedDelete", message))
    return events
