"""Functions about pods, nodes and owners that controllers, the scheduler and the kubelet share.

All of them are pure, except those of `backoff`, and those of `serviceaccount` that read keys from
files. Upstream has most of them in component-helpers and in pkg/controller/controller_utils.go.
"""
