"""The HTTP side of the API server: connections, limits, threads, and forms of responses."""
