"""What pods, nodes and others measured, outside of the objects."""
