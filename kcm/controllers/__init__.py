"""The controllers, each under its upstream name. `kcm.registry` lists them.

Those of one subject share a folder, as upstream: volumes, certificates, service accounts,
endpoints, bootstrap tokens, and the cloud.
"""
