"""Admission: completes new objects, and rejects new and changed ones."""
