"""Custom kinds: parsed definitions, and the base class of the models of custom objects."""
