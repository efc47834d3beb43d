"""The names of the finalizers that protect storage objects in use.

Source: pkg/volume/util/finalizer.go, Kubernetes 1.33.
"""

CLAIM_PROTECTION = "kubernetes.io/pvc-protection"
VOLUME_PROTECTION = "kubernetes.io/pv-protection"
ATTRIBUTES_CLASS_PROTECTION = "kubernetes.io/vac-protection"
