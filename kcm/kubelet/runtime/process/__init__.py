"""The process runtime: each container is a group of plain processes with a supervisor.

Supervisors import this package in an interpreter without site-packages, so this file imports
nothing. The runtime is in `runtime.py`, the supervisor in `supervisor/`.
"""
