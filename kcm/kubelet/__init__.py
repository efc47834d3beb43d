"""The kubelet: the node agent that runs the pods that are bound to this machine.

Source: pkg/kubelet, Kubernetes 1.33.
"""

# It stands here because beat needs it without the kubelet's imports.
HOUSEKEEPING_PERIOD = 2.0  # seconds between beat's messages to clean up
