"""Sources of pods, and what becomes of their updates.

Source: pkg/kubelet/config, Kubernetes 1.33.
"""
