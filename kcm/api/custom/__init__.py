"""Custom kinds: what a definition says of a version, and the base of their objects' models."""
