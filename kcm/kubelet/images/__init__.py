"""The images of a node: what is known of them, who may pull them, and which are removed."""
