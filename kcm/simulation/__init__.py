"""Simulated nodes: any number of kubelets in one process, whose containers are timers.

Guarantees: the API has of a simulated node and its pods what a kubelet would report of containers
that follow their scripts (conditions, reasons, restarts, back-off, graceful deletion). All state is
in the store, so that the process continues after a restart. Does not guarantee that anything runs:
there are no containers, no logs, no network.

`scripting` says what a simulated container does over time, and does no I/O. `runtime` lets one
whole kubelet run such containers.

Source of the behavior: pkg/kubelet, Kubernetes 1.33; kwok for what users script.
"""
