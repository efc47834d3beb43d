"""The supervisor: one small process per container, which outlives the kubelet.

It runs without site-packages and imports next to nothing (no `signal`, `socket`, `json`, `typing`:
together they need more memory than the supervisor itself); see `__main__.py`.
"""
