"""The sources of pods, and the merging of their updates.

Source: pkg/kubelet/config, Kubernetes 1.33.
"""
