"""What controllers, the scheduler and the kubelet share about pods, nodes and owners.

Every function here is pure. Upstream keeps most of them in component-helpers and in
pkg/controller/controller_utils.go.
"""
