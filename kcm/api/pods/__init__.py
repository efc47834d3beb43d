"""What follows from the spec of a pod, by upstream's rules."""
