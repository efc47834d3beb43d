"""The simulated CSI driver with its provisioner and attacher.

It makes volumes for claims, attaches them to the simulator's nodes, detaches and deletes them. Each
call to the driver takes time (`calls`). What a call has done is written when it ends, so a
simulator that is killed makes the call again.

Guarantees: a volume is made for a claim at most once, because its name follows from the claim's
uid, and only while the claim exists. It is deleted only when nothing is attached.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable
from dataclasses import replace
from datetime import UTC, datetime
from typing import Literal, cast

import structlog

from kcm import errors
from kcm.api.core_v1 import PersistentVolume
from kcm.api.scheme import Resource
from kcm.api.simulated import (
    ATTACHER_FINALIZER,
    DRIVER,
    NODE_ID,
    PROVISIONER_FINALIZER,
)
from kcm.api.storage_v1 import StorageClass, VolumeAttachment, VolumeError, class_of_claim
from kcm.apimachinery.meta_v1 import Kind, KubeObject
from kcm.helpers.volumes.protection import with_finalizer, without_finalizer
from kcm.reconcile.plan import Event
from kcm.redisio import Fence
from kcm.simulation.context import SimulatorContext
from kcm.simulation.storage.calls import CallEnd, CallKey, Calls, Verb
from kcm.simulation.storage.objects import provisioned_volume
from kcm.simulation.storage.seen import ATTACHMENTS, CLAIMS, VOLUMES, SeenStorage
from kcm.store import DeleteOptions
from kcm.store.options import Subresource
from kcm.store.writes.guards import Conditions, Exists

log = structlog.get_logger("kcm.nodes")

CLASSES = StorageClass.resource
_PROVISIONING = "Provisioning"


class SimulatedDriver:
    """Does what claims, volumes and attachments ask of the driver. Not thread-safe.

    Times are seconds since 1970. Every method raises Temporary and Fenced.
    """

    def __init__(self, context: SimulatorContext, seen: SeenStorage) -> None:
        self._store = context.store
        self._seen = seen
        self._timers = context.timers
        options = context.options
        scripts = context.storage_scripts()
        self._calls = Calls(scripts, options.storage_delay, self._set_timer, self._refuse)
        self._nodes = frozenset(options.names())
        self._limit = options.volume_limit
        self._sink = context.sink

    def _set_timer(self, key: CallKey, due: float) -> None:
        self._timers.set(("storage", " ".join(key)), due)

    # --- what is to be done

    def look_at_all(self, now: float, fence: Fence | None) -> None:
        """Begins and cancels calls, after everything was read."""
        seen = self._seen
        self._calls.keep(set(self._list_wanted()))
        for name in seen.attachments:
            self.look_at_attachment(name, now, fence)
        for name in seen.volumes:
            self.look_at_volume(name, now, fence)
        for key in seen.claims:
            self.look_at_claim(key, now)

    def _list_wanted(self) -> Iterable[CallKey]:
        for name, attachment in self._seen.attachments.items():
            yield ("detach" if attachment.deleting else "attach"), name
        yield from (("delete", name) for name, v in self._seen.volumes.items() if v.unwanted)
        yield from (("create", key) for key, c in self._seen.claims.items() if c.wanted)

    def look_at_claim(self, key: str, now: float) -> None:
        """Begins to provision a volume for a claim that waits for one."""
        claim = self._seen.claims.get(key)
        call: CallKey = ("create", key)
        if claim is None or not claim.wanted:
            self._calls.cancel(call)
        elif call not in self._calls and f"pvc-{claim.uid}" not in self._seen.volumes:
            text = f'External provisioner is provisioning volume for claim "{key}"'
            self._record(self._store.find(CLAIMS, key), "Normal", _PROVISIONING, text)
            self._calls.begin(call, (key,), now)

    def look_at_volume(self, name: str, now: float, fence: Fence | None) -> None:
        """Deletes a volume that is no longer wanted, once it is detached."""
        volume = self._seen.volumes.get(name)
        if volume is None or volume.driver != DRIVER or name in self._seen.attached_to:
            self._calls.cancel(("delete", name))
            return
        if volume.unwanted:
            self._calls.begin(("delete", name), (name, volume.claim), now)
        if volume.deleting:
            self._write(VOLUMES, name, _unmark, fence)

    def look_at_attachment(self, name: str, now: float, fence: Fence | None) -> None:
        """Attaches or detaches a volume."""
        attachment = self._seen.attachments.get(name)
        if attachment is None:
            self._calls.cancel(("attach", name))
            self._calls.cancel(("detach", name))
            return
        volume = self._seen.volumes.get(attachment.volume)
        claim = volume.claim if volume is not None else ""
        about = (attachment.volume, attachment.node, claim)
        if attachment.deleting:
            self._calls.cancel(("attach", name))
            self._calls.begin(("detach", name), about, now)
        elif attachment.node in self._nodes and not attachment.attached:
            if ("attach", name) not in self._calls:
                self._mark(name, fence)
            self._calls.begin(("attach", name), about, now)

    def _mark(self, name: str, fence: Fence | None) -> None:
        """Keeps volume and attachment from being deleted while it may be attached."""
        volume = self._seen.attachments[name].volume
        self._write(VOLUMES, volume, _mark, fence)
        self._write(ATTACHMENTS, name, _mark_attachment, fence)

    # --- what has been done

    def end_calls(self, due: Iterable[str], now: float, fence: Fence | None) -> None:
        """Goes on with the calls whose timers are due, and writes how those that end ended.

        `due` are the names of the timers.
        """
        for timer in due:
            verb, _, key = timer.partition(" ")
            end = self._calls.advance((cast("Verb", verb), key), now)
            if end is not None:
                self._settle(end, now, fence)

    def _settle(self, end: CallEnd, now: float, fence: Fence | None) -> None:
        verb, key = end.key
        if verb == "create":
            self._create_volume(key, end.error, fence)
        elif verb == "delete":
            self._delete_volume(key, end.error, fence)
        elif verb == "attach":
            seen = self._seen.attachments
            if not end.error and key in seen:  # the watch shows it later
                seen[key] = replace(seen[key], attached=True)
            self._report(key, end.error, now, fence, "attach_error")
        elif end.error:
            self._report(key, end.error, now, fence, "detach_error")
        else:
            self._write(ATTACHMENTS, key, _unmark, fence)

    def _refuse(self, key: CallKey) -> str:
        """Returns why a call fails without a script, "" if it succeeds."""
        verb, name = key
        if verb == "create":
            return self._why_not_created(name)
        return self._why_not_attached(name) if verb == "attach" else ""

    def _why_not_created(self, key: str) -> str:
        """Returns what the claim asks for and the driver cannot do, "" if it can do all."""
        claim = self._store.find(CLAIMS, key)
        if claim is None:
            return ""
        name = class_of_claim(claim)
        if self._store.find(CLASSES, name) is None:
            return f'storageclass.storage.k8s.io "{name}" not found'
        if claim.spec.selector is not None:
            return "claim Selector is not supported"
        if claim.spec.data_source is not None or claim.spec.data_source_ref is not None:
            return "the simulated driver cannot fill a volume from a data source"
        return ""

    def _why_not_attached(self, name: str) -> str:
        """Returns why the volume cannot be attached to its node, "" if it can."""
        attachment = self._seen.attachments.get(name)
        if attachment is None:
            return ""
        volume = self._seen.volumes.get(attachment.volume)
        if volume is None:
            return f'persistentvolume "{attachment.volume}" not found'
        if volume.deleting:
            return f'PersistentVolume "{attachment.volume}" is marked for deletion'
        others = [
            key
            for key in self._seen.attached_on[attachment.node]
            if key != name and self._seen.attachments[key].attached
        ]
        if len(others) < self._limit:
            return ""
        return (
            "rpc error: code = ResourceExhausted desc = "
            f"node {attachment.node} has {len(others)} volumes, which is its limit"
        )

    def _report(
        self,
        name: str,
        error: str,
        now: float,
        fence: Fence | None,
        field: Literal["attach_error", "detach_error"],
    ) -> None:
        """Writes that a volume is attached, or why a call failed."""
        moment = datetime.fromtimestamp(now, tz=UTC).replace(microsecond=0)
        failure = VolumeError(time=moment, message=error) if error else None

        def change(obj: VolumeAttachment) -> VolumeAttachment:
            changes: dict[str, object] = {field: failure}
            if not error:
                changes["attached"] = True
            return obj.with_status(obj.status.replace(**changes))

        self._write(ATTACHMENTS, name, change, fence, Subresource.STATUS)

    def _create_volume(self, key: str, error: str, fence: Fence | None) -> None:
        claim = self._store.find(CLAIMS, key)
        if claim is None:
            return
        name = class_of_claim(claim)
        storage_class = self._store.find(CLASSES, name)
        if not error and storage_class is not None:
            volume = provisioned_volume(claim, storage_class)
            guard = Exists(CLAIMS.name, key, claim.uid)
            try:
                self._store.create(volume, Conditions((guard,), fence))
            except (errors.AlreadyExists, errors.GuardFailed):
                return  # it was made before, or the claim is gone
            except errors.ApiError as refused:
                error = refused.message
            else:
                text = f"Successfully provisioned volume {volume.name}"
                self._record(claim, "Normal", "ProvisioningSucceeded", text)
        if error:
            text = f'failed to provision volume with StorageClass "{name}": {error}'
            self._record(claim, "Warning", "ProvisioningFailed", text)

    def _delete_volume(self, name: str, error: str, fence: Fence | None) -> None:
        volume = self._store.find(VOLUMES, name)
        if volume is None:
            return
        if error:
            self._record(volume, "Warning", "VolumeFailedDelete", error)
            return
        self._write(VOLUMES, name, _without_finalizers, fence)
        options = DeleteOptions(uid=volume.uid)
        try:
            self._store.delete(VOLUMES, name, options, Conditions(fence=fence))
        except (errors.NotFound, errors.Conflict):
            return

    # --- the store

    def _write(
        self,
        resource: Resource[Kind],
        key: str,
        change: Callable[[Kind], Kind],
        fence: Fence | None,
        part: Subresource = Subresource.NONE,
    ) -> None:
        """Changes an object, if it is there."""
        try:
            when = Conditions(fence=fence)
            self._store.modify(resource, key, change, when=when, subresource=part)
        except errors.Fenced:
            raise
        except errors.NotFound:
            return
        except errors.ApiError as error:
            log.warning("An object of storage was not written", key=key, error=error.message)

    def _record(
        self, about: KubeObject | None, kind: Literal["Normal", "Warning"], reason: str, text: str
    ) -> None:
        if self._sink is not None and about is not None:
            self._sink.record(Event(about, kind, reason, text), DRIVER)


def _mark(obj: Kind) -> Kind:
    return with_finalizer(ATTACHER_FINALIZER, obj)


def _unmark(obj: Kind) -> Kind:
    return without_finalizer(ATTACHER_FINALIZER, obj)


def _without_finalizers(obj: PersistentVolume) -> PersistentVolume:
    return without_finalizer(ATTACHER_FINALIZER, without_finalizer(PROVISIONER_FINALIZER, obj))


def _mark_attachment(obj: VolumeAttachment) -> VolumeAttachment:
    if obj.deleting:
        return obj
    marked = _mark(obj)
    notes = {**obj.annotations, NODE_ID: obj.spec.node_name}
    return marked if notes == dict(obj.annotations) else marked.with_metadata(annotations=notes)
