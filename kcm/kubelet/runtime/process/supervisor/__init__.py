"""The supervisor: one small process per container, which outlives the kubelet.

It runs without site-packages and imports little (no `json` or `typing`); see `__main__.py`.
"""
