"""How simulated nodes are told from those with a kubelet behind them."""

from __future__ import annotations

SIMULATOR_LABEL = "simulation.kcm.dev/simulator"  # of a node; its value names the simulator
