"""Pod workers, which sync, terminate and clean up each pod, one update at a time."""
