"""Provisions a volume for a claim: kcm does it, or the provisioner of the claim's class.

Upstream's provisioners of clouds have become CSI drivers; their classes ask for those.
"""

from __future__ import annotations

from kcm.api.core_v1 import Node, PersistentVolume, PersistentVolumeClaim
from kcm.api.core_v1.affinity import NodeSelector, NodeSelectorRequirement, NodeSelectorTerm
from kcm.api.core_v1.persistent_volumes import VolumeNodeAffinity
from kcm.api.storage_v1 import StorageClass, class_of_claim
from kcm.api.volumes.local import DRIVER, PROVISIONER
from kcm.apimachinery.meta_v1 import ObjectMeta
from kcm.controllers.volumes.persistentvolumebinder.binding import bind
from kcm.helpers.volumes.binding import (
    BETA_STORAGE_PROVISIONER,
    BOUND_BY_CONTROLLER,
    PROVISIONED_BY,
    SELECTED_NODE,
    STORAGE_PROVISIONER,
)
from kcm.helpers.volumes.provisioning import provisioned_name, provisioned_spec
from kcm.sdk import Create, Event, Exists, Outcome, Plan, Update, View

_HOSTNAME = "kubernetes.io/hostname"
_OF_ONE_NODE = frozenset({"ReadWriteOnce", "ReadWriteOncePod"})
_FAILED = "ProvisioningFailed"
_MIGRATED = {
    "kubernetes.io/aws-ebs": "ebs.csi.aws.com",
    "kubernetes.io/azure-disk": "disk.csi.azure.com",
    "kubernetes.io/azure-file": "file.csi.azure.com",
    "kubernetes.io/cinder": "cinder.csi.openstack.org",
    "kubernetes.io/gce-pd": "pd.csi.storage.gke.io",
    "kubernetes.io/portworx-volume": "pxd.portworx.com",
    "kubernetes.io/vsphere-volume": "csi.vsphere.vmware.com",
}


def provision(claim: PersistentVolumeClaim, storage_class: StorageClass | None, view: View) -> Plan:
    """Returns what to do for a claim of a class that no volume fits."""
    plan = Plan()
    if storage_class is None:
        text = f'storageclass.storage.k8s.io "{class_of_claim(claim)}" not found'
        return plan.record(claim, _FAILED, text, warning=True)
    provisioner = _MIGRATED.get(storage_class.provisioner, storage_class.provisioner)
    if provisioner == PROVISIONER:
        return _provision_folder(plan, claim, storage_class, view)
    if provisioner.startswith("kubernetes.io/"):
        text = f"no volume plugin matched name: {provisioner}"
        plan.requeue_after = 1.0  # a volume that fits may come
        return plan.record(claim, _FAILED, text, warning=True)
    _announce(plan, claim, provisioner)
    text = (
        "Waiting for a volume to be created either by the external provisioner "
        f"'{provisioner}' or manually by the system administrator. If volume creation is "
        "delayed, please verify that the provisioner is running and correctly registered."
    )
    return plan.record(claim, "ExternalProvisioning", text)


def _announce(plan: Plan, claim: PersistentVolumeClaim, provisioner: str) -> None:
    """Writes into the claim's annotations who is to make its volume."""
    marks = {BETA_STORAGE_PROVISIONER: provisioner, STORAGE_PROVISIONER: provisioner}
    annotations = {**claim.annotations, **marks}
    if annotations != dict(claim.annotations):
        plan.then(Update(claim.with_metadata(annotations=annotations), claim), essential=True)


# --- folders on nodes


def _provision_folder(
    plan: Plan, claim: PersistentVolumeClaim, storage_class: StorageClass, view: View
) -> Plan:
    name = claim.annotations.get(SELECTED_NODE, "")
    node = view.lister(Node).find(name) if name else None
    why = _why_not(claim, name)
    if not why and node is None:
        _choose_again(plan, claim)
        text = f'Failed to get target node: node "{name}" not found'
        return plan.record(claim, _FAILED, text, warning=True)
    if why or node is None:
        text = f'Failed to provision volume with StorageClass "{storage_class.name}": {why}'
        return plan.record(claim, _FAILED, text, warning=True)
    volume = folder_volume(claim, storage_class, node)
    if view.lister(PersistentVolume).find(volume.name) is not None:
        return plan  # the claim's sync goes on when the caches have the volume's claimRef
    guard = Exists(claim.resource.name, claim.key, claim.uid)
    plan.then(Create(volume, (guard,)), essential=True)
    plan.events_after = lambda outcome: _succeeded(claim, volume, outcome)
    plan.plan_after = lambda outcome: _bind_created(claim, outcome, view)
    return plan


def _bind_created(claim: PersistentVolumeClaim, outcome: Outcome, view: View) -> Plan:
    """Returns the plan that binds the volume just made. If it fails, the next sync goes on."""
    for _, volume in outcome.done:
        if isinstance(volume, PersistentVolume):
            return bind(Plan(), volume, claim, view)
    return Plan()


def _why_not(claim: PersistentVolumeClaim, node: str) -> str:
    """Returns why no folder can be made for the claim, "" if one can."""
    modes = set(claim.spec.access_modes or ())
    if not node:
        return f"{PROVISIONER} needs a class with volumeBindingMode WaitForFirstConsumer"
    if not modes <= _OF_ONE_NODE:
        named = ", ".join(sorted(modes - _OF_ONE_NODE))
        return f"{PROVISIONER} makes volumes of one node, which cannot have {named}"
    if claim.spec.volume_mode == "Block":
        return f"{PROVISIONER} makes folders, not block devices"
    if claim.spec.data_source is not None or claim.spec.data_source_ref is not None:
        return f"{PROVISIONER} cannot fill a volume from a data source"
    return f"{PROVISIONER} cannot choose volumes by labels" if claim.spec.selector else ""


def _choose_again(plan: Plan, claim: PersistentVolumeClaim) -> None:
    """Takes the node away that the scheduler has chosen, so that it chooses another."""
    kept = {key: text for key, text in claim.annotations.items() if key != SELECTED_NODE}
    plan.then(Update(claim.with_metadata(annotations=kept or None), claim))


def folder_volume(
    claim: PersistentVolumeClaim, storage_class: StorageClass, node: Node
) -> PersistentVolume:
    """Returns the volume for a claim on a node, bound to the claim."""
    hostname = node.labels.get(_HOSTNAME, node.name)
    here = NodeSelectorRequirement(key=_HOSTNAME, operator="In", values=[hostname])
    terms = NodeSelector(node_selector_terms=[NodeSelectorTerm(match_expressions=[here])])
    affinity = VolumeNodeAffinity(required=terms)
    marks = {BOUND_BY_CONTROLLER: "yes", PROVISIONED_BY: PROVISIONER}
    return PersistentVolume(
        metadata=ObjectMeta(name=provisioned_name(claim), annotations=marks),
        spec=provisioned_spec(claim, storage_class, DRIVER, affinity),
    )


def _succeeded(
    claim: PersistentVolumeClaim, volume: PersistentVolume, outcome: Outcome
) -> list[Event]:
    if not any(isinstance(write, Create) for write, _ in outcome.done):
        return []
    text = f"Successfully provisioned volume {volume.name} using {PROVISIONER}"
    return [Event(claim, "Normal", "ProvisioningSucceeded", text)]
