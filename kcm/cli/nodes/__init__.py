"""`kcm nodes`: runs simulated nodes, and gives orders to those that run."""
