"""The node object: registered, kept alive by a lease, reported on."""
