"""What happened in a control plane: every write with its author, and why an object is as it is."""
