"""The manager: starts the controllers, dispatches, pumps, reaps and ingests, and serves health and
metrics.
"""
