"""The default runtime: each container is a supervised group of plain processes.

Supervisors import this package in an interpreter without site-packages, so this
file imports nothing; the runtime is `runtime.py`, the supervisor `supervisor/`.
"""
