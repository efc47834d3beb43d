"""The service account tokens of a node's pods: requests, keeps and renews them."""
