"""Simulated nodes: any number of kubelets in one process, whose containers are timers.

Guarantees: the API shows of a simulated node and its pods what a kubelet would report of containers
that behave as scripted (conditions, reasons, restarts, back-off, graceful deletion); all state is
in the store, so that the process goes on after a restart where it was. Does not guarantee that
anything runs: there are no containers, no logs, no network.

Source of the behaviour: pkg/kubelet, Kubernetes 1.33; kwok for what users script.
"""
