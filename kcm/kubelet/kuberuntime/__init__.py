"""Turns pods' specs into calls of the runtime, and what the runtime runs into views of pods.

Source: pkg/kubelet/kuberuntime, Kubernetes 1.33.
"""
