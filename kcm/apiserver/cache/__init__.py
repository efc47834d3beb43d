"""The watch caches, one per kind, and the cacher that fills them from Redis."""
