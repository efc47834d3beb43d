"""Rules for the parts of a pod's spec, one module per part.

Source: pkg/apis/core/validation/validation.go, Kubernetes 1.33.
"""
