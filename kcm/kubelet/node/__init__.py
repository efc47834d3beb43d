"""The node of the kubelet: its registration, its lease and its node status."""
