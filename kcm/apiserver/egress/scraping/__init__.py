"""Measures nodes whose kubelets report no usage by themselves, as metrics-server does."""
