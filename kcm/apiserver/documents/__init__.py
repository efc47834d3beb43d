"""Documents about the API itself: discovery and OpenAPI."""
