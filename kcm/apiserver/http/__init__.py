"""The HTTP side of requests: connections, limits, threads, and the forms of responses."""
