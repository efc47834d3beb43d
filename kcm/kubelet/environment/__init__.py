"""What a container is told by its environment: pure functions of the pod and lookups."""
