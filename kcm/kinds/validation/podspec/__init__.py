"""Validation of the parts of a pod's spec, one module for each part.

Source: pkg/apis/core/validation/validation.go, Kubernetes 1.33.
"""
