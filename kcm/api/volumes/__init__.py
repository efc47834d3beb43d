"""The names that storage has in objects: of volumes, drivers and finalizers."""
