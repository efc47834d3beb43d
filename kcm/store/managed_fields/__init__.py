"""metadata.managedFields: which field manager owns which fields."""
