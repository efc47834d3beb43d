"""Admission: what the system adds to a new object, or refuses it for."""
