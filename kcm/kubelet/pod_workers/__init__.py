"""Pod workers: they take each pod through its life, one update at a time."""
