"""The environment variables of containers: functions of the pod and the objects it refers to."""
