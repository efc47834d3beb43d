"""The storage of simulated nodes: a CSI driver whose calls are timers, and what pods mount of it.

The driver does the work of external-provisioner and external-attacher. Guarantees: all state is in
objects, so that another simulator continues after a restart; a volume is its PersistentVolume, so
that none is ever without one. Nothing is stored in volumes.

Source of the behavior: kubernetes-csi/external-provisioner v5, kubernetes-csi/external-attacher v4,
and pkg/kubelet/volumemanager, Kubernetes 1.33.
"""
