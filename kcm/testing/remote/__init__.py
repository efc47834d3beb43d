"""The HTTP API by which tests in any language hold a control plane: clock, faults, history.

It calls the methods of `ControlPlane` that tests in Python call. See docs/testing-api.md and
docs/designs/0064.
"""
