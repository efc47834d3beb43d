"""Turns pod specs into calls of the container runtime, and the runtime's lists into views of pods.

Source: pkg/kubelet/kuberuntime, Kubernetes 1.33.
"""
