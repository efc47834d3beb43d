"""The Node object: registered, kept alive by a lease, and reported on."""
