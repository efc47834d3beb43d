"""Service account tokens: their keys, their claims, and how they are signed and read.

Source: pkg/serviceaccount, Kubernetes 1.33.
"""
