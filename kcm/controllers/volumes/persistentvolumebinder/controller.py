"""PersistentVolumeBinder: gives claims their volumes, and reclaims the volumes afterwards.

A key is a claim (`namespace/name`) or a volume (`name`). A volume is saved first, then its claim,
so that a binding that was cut off is finished by the next sync of either.

A class whose provisioner is `kcm.dev/local` gets folders on nodes, made by kcm itself; a claim of
another class waits for its provisioner, to which annotations of the claim speak.

Source: pkg/controller/volume/persistentvolume/{pv_controller,pv_controller_base,index}.go,
Kubernetes 1.33. Departures: upstream syncs everything each `--pvclaimbinder-sync-period`, this
controller only claims that nothing else would wake; Recycle finds no recycler for any volume, and
Delete no deleter for volumes that nobody provisioned.
"""

from __future__ import annotations

from datetime import timedelta
from typing import Any

from pydantic import Field

from kcm.api.core_v1 import Node, PersistentVolume, PersistentVolumeClaim, Pod
from kcm.api.storage_v1 import StorageClass
from kcm.apimachinery.durations import GoDuration
from kcm.controllers.volumes.persistentvolumebinder import claims, keys, volumes
from kcm.sdk import Controller, Options, Plan, View, Watch


class PersistentVolumeBinderOptions(Options):
    """The options of the persistentvolume-binder controller."""

    pvclaimbinder_sync_period: GoDuration = Field(
        default=timedelta(seconds=15),
        gt=timedelta(),
        description="The period for syncing persistent volumes and persistent volume claims",
    )
    enable_dynamic_provisioning: bool = Field(
        default=True,
        description="Enable dynamic provisioning for environments that support it",
    )


class PersistentVolumeBinderController(Controller):
    """Syncs claims and volumes, one key each."""

    name = "persistentvolume-binder-controller"
    short_name = "persistentvolumebinder"
    options_type = PersistentVolumeBinderOptions
    options: PersistentVolumeBinderOptions
    reads = (Node, Pod)

    def watches(self) -> tuple[Watch[Any], ...]:
        return (
            Watch(PersistentVolumeClaim, keys.of_claim),
            Watch(PersistentVolume, keys.of_volume),
            Watch(StorageClass, keys.of_class),
        )

    def reconcile(self, key: str, view: View) -> Plan:
        if "/" not in key:
            volume = view.lister(PersistentVolume).find(key)
            return Plan() if volume is None else volumes.sync(volume, view)
        claim = view.lister(PersistentVolumeClaim).find(key)
        if claim is None:
            return Plan()
        plan = claims.sync(claim, view, provisions=self.options.enable_dynamic_provisioning)
        if plan.requeue_after is not None:
            plan.requeue_after = self.options.pvclaimbinder_sync_period.total_seconds()
        return plan
