"""The REST API's speed, against the same ASGI server answering a constant of the same bytes."""
