"""Requests that are passed on to another server: a pod, a Service, a kubelet."""
