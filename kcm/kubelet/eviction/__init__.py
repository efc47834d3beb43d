"""Eviction: pods go before the machine runs out of what all of them need."""
