"""Measures nodes: scheduling, simulated nodes, real ones, and systems at rest."""
