"""Admission webhooks: servers that are asked whether a request is admitted, and may change its
object.
"""
