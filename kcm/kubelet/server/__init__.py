"""The node's HTTP API: logs, exec, attach, port-forward, pods, metrics and stats."""
