"""Managed fields: the record in metadata.managedFields of which manager owns which fields."""
