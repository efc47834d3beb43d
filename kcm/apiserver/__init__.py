"""The Kubernetes REST API over the store: an ASGI app that translates and decides nothing itself.

Guarantees: defaulting, validation, conflicts and finalizers are the store's, so they are the same
for HTTP, controllers and injected events. Every failure is a `Status` object, never a trace. Does
not guarantee that a list is a snapshot beyond its first page (see `kcm.store.reader`).
"""
