"""Validation of the kinds of resource.k8s.io: devices, and claims to them."""
