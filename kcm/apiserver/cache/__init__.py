"""The watch caches: one per kind, filled by one reader of Redis, `hub`."""
