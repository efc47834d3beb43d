"""Probes: checks whether containers have started, are ready and are alive."""
