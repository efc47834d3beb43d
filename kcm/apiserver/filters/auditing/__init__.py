"""Audit events of `--audit-policy-file` and `--audit-log-path`, as kube-apiserver writes them."""
