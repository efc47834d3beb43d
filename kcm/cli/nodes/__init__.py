"""`kcm nodes`: runs simulated nodes, and sends commands to those that run."""
