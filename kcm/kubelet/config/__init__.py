"""Where pods come from, and what becomes of them there.

Source: pkg/kubelet/config, Kubernetes 1.33.
"""
