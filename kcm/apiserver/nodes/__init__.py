"""Connections to the kubelets of nodes: logs, exec, attach, port-forward and the proxy."""
