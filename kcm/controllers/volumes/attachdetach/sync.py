"""The plan for one volume: what is to be attached, and what is to be detached.

Detaching comes first, as upstream. What has to be known at the next sync is in the plan's state:
since when a volume is to be detached from a node, and which Events its pods have had.
"""

from __future__ import annotations

import json
from collections import Counter
from collections.abc import Mapping
from dataclasses import dataclass, field
from datetime import datetime, timedelta
from functools import partial

from kcm.api.core_v1 import Node, PersistentVolume
from kcm.api.core_v1.nodes import AttachedVolume
from kcm.api.storage_v1 import (
    CSIDriver,
    VolumeAttachment,
    VolumeAttachmentSource,
    VolumeAttachmentSpec,
)
from kcm.api.volumes.attachments import PLUGIN, attachment_name, name_for_node
from kcm.apimachinery.meta_v1 import ObjectMeta, format_time, parse_time
from kcm.controllers.volumes.attachdetach import messages
from kcm.controllers.volumes.attachdetach.counts import FORCED, OUT_OF_SERVICE, TIMEOUT, ForceReason
from kcm.controllers.volumes.attachdetach.keys import first_name
from kcm.controllers.volumes.attachdetach.state import VolumeState
from kcm.helpers.volumes.attachments import is_attachable
from kcm.sdk import (
    Counts,
    Create,
    Delete,
    DeleteOptions,
    Exists,
    Outcome,
    PassPlan,
    PassView,
    Patch,
    Plan,
    View,
    sum_counts,
)

ATTACH_TIMEOUT = timedelta(minutes=2)  # upstream's csiTimeout
_SINCE, _REPORTED = "detach-since ", "reported "  # each followed by the name of a node
_MULTI_ATTACH = "multi-attach"


@dataclass(frozen=True)
class DetachRules:
    """When a volume that is in use is detached nevertheless."""

    longest: timedelta  # how long it waits
    forces: bool  # whether it is detached from a node that is not ready by then


@dataclass(frozen=True)
class _Detachment:
    """A volume that is to be detached now, from one node."""

    attachment: VolumeAttachment
    forced: ForceReason

    @property
    def node(self) -> str:
        return self.attachment.spec.node_name

    def delete(self) -> Delete:
        return Delete(self.attachment, DeleteOptions(uid=self.attachment.uid))


@dataclass
class VolumeSync:
    """One sync of a volume. Call `plan` once."""

    state: VolumeState
    view: View
    rules: DetachRules
    memory: dict[str, str] = field(default_factory=dict)  # for the next sync
    waits: list[float] = field(default_factory=list)  # seconds until there is something to do
    result: Plan = field(default_factory=Plan)
    patches: list[Patch] = field(default_factory=list)
    creations: list[Create] = field(default_factory=list)

    def plan(self) -> Plan:
        detachments = [
            detachment
            for node, attachment in sorted(self.state.attachments.items())
            if node not in self.state.users and node not in self.state.holders
            if (detachment := self._detach(node, attachment)) is not None
        ]
        for node in self._nodes_to_attach():
            self._attach(node)
        result = self.result.then(*self.patches, essential=True).then(*self.creations)
        result.state = self.memory
        result.requeue_after = min(self.waits, default=None)
        if detachments:
            result.plan_after = lambda outcome: self._finish(detachments, outcome)
        return result

    def plan_attaching(self) -> Plan:
        """Returns the plan that creates missing VolumeAttachments, and does nothing else."""
        for node in self._nodes_to_attach():
            if node not in self.state.attachments:
                self._begin(node)
        return Plan().then(*self.creations)

    # --- detaching

    def _detach(self, node: str, attachment: VolumeAttachment) -> _Detachment | None:
        """Takes the volume from the node's list, unless it has to wait."""
        state, now = self.state, self.view.now
        since = self._detach_requested(node)
        left = (since + self.rules.longest - now).total_seconds()
        expired = left < 0 and self.rules.forces
        out_of_service = state.is_out_of_service(node)
        forced = (expired and not state.is_healthy(node)) or out_of_service
        if state.is_in_use(node) and not forced and not attachment.deleting:
            self.memory[_SINCE + node] = format_time(since)
            if self.rules.forces and left >= 0:
                self.waits.append(left + 0.01)
            return None
        reason: ForceReason = TIMEOUT if expired else OUT_OF_SERVICE if out_of_service else ""
        if state.is_reported(node):
            unlisting = unlist_volume(
                state.nodes[node],
                state.unique_name(node),
                although_used=bool(reason) or attachment.deleting,
            )
            self.patches.append(unlisting)
        return None if attachment.deleting else _Detachment(attachment, reason)

    def _detach_requested(self, node: str) -> datetime:
        text = self.view.memory.get(_SINCE + node, "")
        try:
            return parse_time(text)
        except ValueError:
            return self.view.now.replace(microsecond=0)

    def _finish(self, detachments: list[_Detachment], outcome: Outcome) -> Plan:
        """Returns the deletions of what is safe to detach, after the nodes' lists were changed."""
        latest = {obj.name: obj for _, obj in outcome.done if isinstance(obj, Node)}
        safe = [d for d in detachments if d.forced or not self._is_used(latest.get(d.node))]
        reasons = {d.attachment.uid: d.forced for d in safe}
        plan = Plan(
            requeue_after=self.result.requeue_after,
            counts_after=lambda done: _count_forced(reasons, done),
        )
        return plan.then(*(d.delete() for d in safe))

    def _is_used(self, node: Node | None) -> bool:
        """Reports whether the node began to use the volume before its list was changed."""
        if node is None:
            return False
        return self.state.unique_name(node.name) in (node.status.volumes_in_use or ())

    # --- attaching

    def _nodes_to_attach(self) -> list[str]:
        """Returns the nodes with users; those where the volume is come first, then the oldest."""

        def order(node: str) -> tuple[bool, float, str]:
            times = (pod.metadata.creation_timestamp for pod in self.state.users[node])
            oldest = min((time.timestamp() for time in times if time is not None), default=0.0)
            return node not in self.state.attachments, oldest, node

        return sorted(self.state.users, key=order)

    def _attach(self, node: str) -> None:
        attachment = self.state.attachments.get(node)
        if attachment is None:
            self._begin(node)
            return
        attached = attachment.status.attached and not attachment.deleting
        reported, name = self.state.is_reported(node), self.state.unique_name(node)
        if attached and not reported:
            self.patches.append(list_volume(self.state.nodes[node], name))
            self._record(node, messages.SUCCEEDED, messages.attached(self.state.name))
        elif reported and not attached:  # somebody else has detached it
            removal = unlist_volume(self.state.nodes[node], name, although_used=True)
            self.patches.append(removal)
        if not attached:
            self._report_failure(node, attachment)

    def _begin(self, node: str) -> None:
        """Creates the VolumeAttachment, unless the volume is, or will be, on another node."""
        state = self.state
        if state.is_reported(node):  # of a VolumeAttachment that was deleted
            name = state.unique_name(node)
            self.patches.append(unlist_volume(state.nodes[node], name, although_used=True))
        if not state.shareable and (state.attachments or self.creations):
            self._report_multi_attach(node)
            return
        assert state.volume is not None
        csi = state.volume.spec.csi
        assert csi is not None
        spec = VolumeAttachmentSpec(
            attacher=csi.driver,
            node_name=node,
            source=VolumeAttachmentSource(persistent_volume_name=state.volume.name),
        )
        meta = ObjectMeta(name=attachment_name(csi.driver, csi.volume_handle, node))
        attachment = VolumeAttachment(metadata=meta, spec=spec)
        first = state.users[node][0]
        guard = Exists(first.resource.name, first.key, first.uid)
        # A pod whose last container runs may be deleted by now: its volume stays needed.
        guards = () if first.deleting else (guard,)
        self.creations.append(Create(attachment, guards))
        self.waits.append(ATTACH_TIMEOUT.total_seconds())

    def _report_multi_attach(self, node: str) -> None:
        """Tells the pods of a node once that the volume is attached elsewhere."""
        state = self.state
        elsewhere = [n for n, a in sorted(state.attachments.items()) if a.status.attached]
        if not elsewhere:
            return  # it is being attached or given back there; nothing is wrong yet
        key = _REPORTED + node
        self.memory[key] = _MULTI_ATTACH
        if self.view.memory.get(key) == _MULTI_ATTACH:
            return
        others = [pod for other in elsewhere for pod in state.users.get(other, ())]
        for pod in state.users[node]:
            text = messages.multi_attach(state.name, pod, others)
            self.result.record(pod, messages.FAILED, text, warning=True)

    def _report_failure(self, node: str, attachment: VolumeAttachment) -> None:
        """Tells the pods of a node once of each failure of the attacher."""
        why, occasion = self._failure_of(attachment)
        if not why:
            return
        key, mark = _REPORTED + node, f"{attachment.uid} {occasion}"
        self.memory[key] = mark
        if self.view.memory.get(key) != mark:
            self._record(node, messages.FAILED, messages.attach_failed(self.state.name, why))

    def _failure_of(self, attachment: VolumeAttachment) -> tuple[str, str]:
        """Returns why the volume is not attached, and on which occasion, ("", "") if it may be."""
        if attachment.deleting:
            return messages.BEING_DELETED, messages.BEING_DELETED
        error = attachment.status.attach_error
        if error is not None:
            when = format_time(error.time) if error.time is not None else ""
            return error.message or "", f"{when} {error.message}"
        created = attachment.metadata.creation_timestamp
        if created is None or self.state.volume is None:
            return "", ""
        waited = self.view.now - created
        times = waited // ATTACH_TIMEOUT
        self.waits.append(((times + 1) * ATTACH_TIMEOUT - waited).total_seconds() + 0.01)
        return (messages.timed_out(self.state.volume), f"timeout {times}") if times else ("", "")

    def _record(self, node: str, reason: str, message: str) -> None:
        for pod in self.state.users[node]:
            self.result.record(pod, reason, message, warning=reason == messages.FAILED)


def _count_forced(reasons: Mapping[str, ForceReason], outcome: Outcome) -> Counts:
    done = [write.old.uid for write, _ in outcome.done if isinstance(write, Delete)]
    return sum_counts(FORCED.count(reasons[uid]) for uid in done if reasons.get(uid))


# --- The reconcile sync: compares what nodes list as attached with the VolumeAttachments.
#
# It also counts volumes for the gauges on /metrics. Where both agree, it writes nothing else.
#
# Source: VerifyVolumesAreAttached in pkg/volume/util/operationexecutor/operation_generator.go and
# pkg/controller/volume/attachdetach/metrics/metrics.go, Kubernetes 1.33.


VERIFYING = "verifyVolumesAreAttached"  # the name of the loop
TOTALS, IN_USE = "totals", "in-use"  # the fields of the state, JSON lists of labels and a number
ACTUAL, DESIRED = "actual_state_of_world", "desired_state_of_world"


def verify(view: PassView) -> PassPlan:
    """Returns the plan of one pass: entries without a VolumeAttachment are taken away."""
    attachments = view.lister(VolumeAttachment)
    patches: list[Patch] = []
    for node in view.lister(Node).list():
        for listed in node.status.volumes_attached or ():
            name = name_for_node(listed.name, node.name)
            if name and attachments.find(name) is None:
                patches.append(unlist_volume(node, listed.name, although_used=True))
    return PassPlan(state=_count(view), waits=()).then(*patches)


def _count(view: View) -> dict[str, str]:
    """Returns the numbers of volumes by plugin and state, and by node and plugin."""
    totals: Counter[tuple[str, str]] = Counter()
    in_use: Counter[tuple[str, str]] = Counter()
    for volume in view.lister(PersistentVolume).list():
        csi = volume.spec.csi
        if csi is None or not is_attachable(volume, view.lister(CSIDriver).find(csi.driver)):
            continue
        if first_name(volume.name, view) != volume.name:
            continue
        plugin, state = f"{PLUGIN}:{csi.driver}", VolumeState.read(volume.name, view)
        totals[plugin, ACTUAL] += sum(a.status.attached for a in state.attachments.values())
        totals[plugin, DESIRED] += len(state.users)
        for node, pods in state.users.items():
            in_use[node, plugin] += len(pods)
    return {
        name: json.dumps([[*labels, number] for labels, number in sorted(counts.items()) if number])
        for name, counts in ((TOTALS, totals), (IN_USE, in_use))
        if counts
    }


# --- Changes of a node's `volumesAttached`, as functions for a `Patch` of its status.


def list_volume(node: Node, name: str) -> Patch:
    """Returns the write after which the node's status has the volume as attached."""
    return Patch(node, partial(_add, name), status=True)


def unlist_volume(node: Node, name: str, *, although_used: bool) -> Patch:
    """Returns the write after which the node's status does not have the volume as attached.

    It changes nothing if the node uses the volume by then, except with `although_used`.
    """
    return Patch(node, partial(_remove, name, although_used), status=True)


def _add(name: str, obj: Node) -> Node:
    present = obj.status.volumes_attached or []
    if any(volume.name == name for volume in present):
        return obj
    added = [*present, AttachedVolume(name=name, device_path="")]
    return obj.with_status(obj.status.replace(volumes_attached=added))


def _remove(name: str, although_used: bool, obj: Node) -> Node:
    present = obj.status.volumes_attached or []
    kept = [volume for volume in present if volume.name != name]
    in_use = name in (obj.status.volumes_in_use or ())
    if len(kept) == len(present) or (in_use and not although_used):
        return obj
    return obj.with_status(obj.status.replace(volumes_attached=kept or None))
