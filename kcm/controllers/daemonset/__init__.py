"""The DaemonSet controller is in `controller`; the other modules are its pure helpers."""

from kcm.controllers.daemonset.controller import DaemonSetController, DaemonSetOptions

__all__ = ["DaemonSetController", "DaemonSetOptions"]
