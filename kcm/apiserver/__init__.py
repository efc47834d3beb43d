"""The Kubernetes REST API over the store, as an ASGI app.

Defaulting, validation, conflicts and finalizers are the store's, so they are the same for HTTP
clients, controllers and injected events. Every failure becomes a `Status` object, never a
traceback. A list is a snapshot for its first page only (see `kcm.store.reader`).
"""
