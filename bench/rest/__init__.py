"""Measures what a client of the REST API sees of `kcm up`: writes, and the work of controllers.

All requests use HTTP with TLS and a token. A watch shows when something is complete.
"""
