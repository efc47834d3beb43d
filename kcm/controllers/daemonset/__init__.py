"""The DaemonSet controller: `controller` is its entry, the rest its pure helpers."""

from kcm.controllers.daemonset.controller import DaemonSetController, DaemonSetOptions

__all__ = ["DaemonSetController", "DaemonSetOptions"]
