"""The volumes of pods on the node's disk: sets them up, updates and removes them."""
