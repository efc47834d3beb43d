"""Kubernetes' functions for CEL, as functions of Python.

The library knows no types of ours. A quantity, an IP address or a URL is therefore a map with one
entry, whose key names the type, and a function that gets another map raises ValueError, as for a
call without a matching overload.
"""
