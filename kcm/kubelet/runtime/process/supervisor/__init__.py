"""The supervisor: one small process per container, which outlives the kubelet.

It runs without site-packages and imports next to nothing (no `signal`, `socket`,
`json`, `typing`: together they cost more than it is), see `__main__.py`.
"""
