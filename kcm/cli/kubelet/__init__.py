"""The command `kcm kubelet`, which makes this machine a node."""
