"""What the node, its pods and their containers use."""
