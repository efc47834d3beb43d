"""Validation of the volumes of pods and of their mounts."""
