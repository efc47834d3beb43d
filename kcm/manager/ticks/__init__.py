"""Periodic loops: a pass of one loop at a time over all workers, and which loops rest."""
