"""Probes: whether containers have started, are ready, and live."""
