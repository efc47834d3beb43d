"""The API types: pure data, no I/O. Import what you need from its modules."""
