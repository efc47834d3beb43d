"""The names that simulated nodes and the simulated CSI driver have in objects."""

from __future__ import annotations

SIMULATOR_LABEL = "simulation.kcm.dev/simulator"  # a label of a node; its value names the simulator
DRIVER = "sim.csi.kcm.dev"
STORAGE_CLASS = "simulated"
# As external-attacher names its finalizer of VolumeAttachments and PersistentVolumes.
ATTACHER_FINALIZER = "external-attacher/sim-csi-kcm-dev"
# external-provisioner's finalizer of PersistentVolumes that it has to delete.
PROVISIONER_FINALIZER = "external-provisioner.volume.kubernetes.io/finalizer"
NODE_ID = "csi.alpha.kubernetes.io/node-id"  # an annotation of VolumeAttachments
