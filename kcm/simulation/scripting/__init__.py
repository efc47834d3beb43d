"""The behavior of simulated pods and nodes: scripts, stages, usage and addresses.

It does no I/O.
"""
