"""Probes: they tell whether containers have started, are ready, and live."""
