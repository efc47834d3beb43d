"""Stats: the resources that the node, its pods and their containers use."""
