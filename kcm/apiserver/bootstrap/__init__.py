"""What an API server sets up and keeps: foundations, definitions, and the Service of itself."""
