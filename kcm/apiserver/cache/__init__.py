"""The watch caches, one for each kind, and the cacher that fills them from Redis."""
