"""Aggregation: versions of API groups that other servers serve, behind Services.

An APIService names them. Requests for such a version are passed on to its server, and the server's
documents are merged into those of this one.
"""
