"""Kubernetes' own test cases, put to kcm; see README.md."""
