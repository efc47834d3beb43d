"""The DaemonSet controller: `controller` is its entry, and the rest are its pure helpers."""

from kcm.controllers.daemonset.controller import DaemonSetController, DaemonSetOptions

__all__ = ["DaemonSetController", "DaemonSetOptions"]
