"""`kcm nodes`: run simulated nodes, and act on those that run."""
