"""`kcm kubelet`: makes this machine a node."""
