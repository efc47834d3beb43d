"""The objects that an API server creates and maintains: defaults, definitions, its own Service."""
