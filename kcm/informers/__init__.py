"""Informers: caches of kinds that follow the store's watch, by client-go's rules."""
