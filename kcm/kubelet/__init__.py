"""The node agent: what is bound to a node runs on it, and what runs is reported."""
