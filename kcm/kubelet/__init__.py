"""The kubelet: the node agent that runs the pods that are bound to this machine.

Source: pkg/kubelet, Kubernetes 1.33.
"""

# It is defined here because beat needs it, and must not import the whole kubelet.
HOUSEKEEPING_PERIOD = 2.0  # seconds between beat's messages to clean up
