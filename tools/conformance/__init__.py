"""Runs Kubernetes' own conformance suite against kcm, and writes docs/conformance.md."""
