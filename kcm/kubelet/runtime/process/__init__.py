"""The default runtime: each container is a group of plain processes with a supervisor.

Supervisors import this package in an interpreter without site-packages, so that this file imports
nothing; the runtime is `runtime.py`, the supervisor `supervisor/`.
"""
