"""What admission policies and webhooks share: what they see of a request, and which they match."""
