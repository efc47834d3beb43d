"""The environment of containers: pure functions of the pod and the objects it refers to."""
