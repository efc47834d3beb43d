"""From a pod's spec to calls of the runtime, and from what runs back to the pod's status.

Source: pkg/kubelet/kuberuntime, Kubernetes 1.33.
"""
