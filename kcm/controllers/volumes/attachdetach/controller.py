"""AttachDetach: has volumes attached to the nodes of the pods that use them, and detached after.

A key is a PersistentVolume, or the claim of a pod whose volume is not known yet. The controller
keeps a VolumeAttachment for each node that needs the volume. The attacher of the volume's CSI
driver does the work and reports in its status. What is attached is listed in the node's
`volumesAttached`, without which a kubelet does not mount it, and from which it is taken before it
is detached. A volume that a node lists in `volumesInUse` stays attached, unless the node has the
taint `node.kubernetes.io/out-of-service`, or is not ready when the volume has waited for six
minutes.

Guarantees: a volume for one node is never attached to two. Its VolumeAttachment for another node
has to be gone first, whether or not it was ever attached.

Source: pkg/controller/volume/attachdetach/{attach_detach_controller,reconciler/reconciler,
populator/desired_state_of_world_populator,cache/*}.go and
pkg/volume/util/operationexecutor/operation_generator.go, Kubernetes 1.33. Departures: only volumes
of CSI drivers are attached, and those of clouds are not translated to CSI; the six minutes have a
flag of kcm's; a sync follows each change, so the reconcile sync only corrects the lists of nodes; a
volume that another node's VolumeAttachment waits for counts as attached there.
"""

from __future__ import annotations

from collections.abc import Mapping
from datetime import timedelta
from typing import Any

from pydantic import Field

from kcm.api.core_v1 import Node, PersistentVolume, PersistentVolumeClaim, Pod
from kcm.api.storage_v1 import CSIDriver, VolumeAttachment
from kcm.apimachinery.durations import GoDuration
from kcm.controllers.volumes.attachdetach import keys, sync
from kcm.controllers.volumes.attachdetach.counts import FORCED
from kcm.controllers.volumes.attachdetach.state import VolumeState
from kcm.controllers.volumes.attachdetach.sync import DetachRules, VolumeSync
from kcm.sdk import Controller, Options, PassPlan, PassView, Plan, Tick, View, Watch


class AttachDetachOptions(Options):
    """The options of the attach-detach controller."""

    disable_attach_detach_reconcile_sync: bool = Field(
        default=False,
        description="Disable volume attach detach reconciler sync. Disabling this may cause "
        "volumes to be mismatched with pods. Use wisely",
    )
    attach_detach_reconcile_sync_period: GoDuration = Field(
        default=timedelta(minutes=1),
        ge=timedelta(seconds=1),
        description="The reconciler sync wait time between volume attach detach. This duration "
        "must be larger than one second, and increasing this value from the default may allow for "
        "volumes to be mismatched with pods",
    )
    disable_force_detach_on_timeout: bool = Field(
        default=False,
        description="Prevent force detaching volumes based on maximum unmount time and node "
        "status. If this flag is set to true, the non-graceful node shutdown feature must be used "
        "to recover from node failure",
    )
    attach_detach_max_wait_for_unmount: GoDuration = Field(
        default=timedelta(minutes=6),
        ge=timedelta(),
        description="How long a volume that is in use on a node which is not ready stays attached "
        "after its last pod. Upstream has no flag for it",
    )


class AttachDetachController(Controller):
    """Syncs volumes of CSI drivers, one key each."""

    name = "persistentvolume-attach-detach-controller"
    short_name = "attachdetach"
    options_type = AttachDetachOptions
    options: AttachDetachOptions
    remembers = True  # since when a volume is to be detached, and which Events it had
    metrics = (FORCED,)

    def watches(self) -> tuple[Watch[Any], ...]:
        return (
            Watch(Pod, keys.of_pod),
            Watch(PersistentVolumeClaim, keys.of_claim),
            Watch(PersistentVolume, keys.of_volume),
            Watch(VolumeAttachment, keys.of_attachment),
            Watch(Node, keys.of_node),
            Watch(CSIDriver, keys.of_driver),
        )

    def ticks(self) -> tuple[Tick, ...]:
        if self.options.disable_attach_detach_reconcile_sync:
            return ()
        period = self.options.attach_detach_reconcile_sync_period.total_seconds()
        return (Tick(sync.VERIFYING, period, self._verify),)

    def _verify(self, view: PassView, state: Mapping[str, str]) -> PassPlan:
        return sync.verify(view)

    def reconcile(self, key: str, view: View) -> Plan:
        if "/" in key:
            return self._attach_claimed(key, view)
        state = VolumeState.read(key, view)
        if not state.attachments and not state.users:
            return Plan(state={})
        return VolumeSync(state, view, self._rules()).plan()

    def _attach_claimed(self, key: str, view: View) -> Plan:
        """Returns what is to be attached for the pods of a claim. The rest is for the volume's key.

        Both may be synced at the same time. So what they create depends on the pod being there.
        """
        claim = view.lister(PersistentVolumeClaim).find(key)
        name = claim.spec.volume_name if claim is not None else None
        if not name:
            return Plan()
        state = VolumeState.read(keys.first_name(name, view), view)
        return VolumeSync(state, view, self._rules()).plan_attaching()

    def _rules(self) -> DetachRules:
        longest = self.options.attach_detach_max_wait_for_unmount
        return DetachRules(longest, forces=not self.options.disable_force_detach_on_timeout)
