"""The HTTP servers of kcm: their sockets, their uvicorn configuration, and upgrades."""
