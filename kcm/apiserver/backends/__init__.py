"""Servers that the API server calls for its clients: webhooks, and APIs of other servers."""
