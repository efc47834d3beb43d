"""Pod statuses: generates them from the runtime's views, and writes them to the API."""
