"""Pods' volumes on the node's disk: set up, kept up to date, removed."""
