"""The label by which simulated nodes can be told from nodes that have a kubelet."""

from __future__ import annotations

SIMULATOR_LABEL = "simulation.kcm.dev/simulator"  # a label of a node; its value names the simulator
