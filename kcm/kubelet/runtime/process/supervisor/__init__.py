"""The supervisor: one small process per container, which outlives the kubelet.

It runs without site-packages and imports very little (no `signal`, `socket`, `json` or `typing`,
which together need more memory than the supervisor itself); see `__main__.py`.
"""
