"""`kcm kubelet`: make this machine a node."""
