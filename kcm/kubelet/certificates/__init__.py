"""The kubelet's own certificates: how it gets the first ones, and how they rotate."""
