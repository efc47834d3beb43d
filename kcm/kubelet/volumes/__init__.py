"""Volumes of pods on the node's disk: set up, kept up to date and removed."""
