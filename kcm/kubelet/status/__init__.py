"""Statuses of pods: how the kubelet generates them and writes them to the API."""
