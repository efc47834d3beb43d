"""Measures what a client of the REST API sees of `kcm up`: writes, and the work of controllers.

Everything goes over HTTP, with TLS and a token; a watch shows when something is complete.
"""
