"""Resource, custom and external metrics, which are kept apart from the objects."""
