"""A server of admission webhooks, in a process of its own, for tests."""
