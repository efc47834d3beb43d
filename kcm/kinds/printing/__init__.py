"""The columns that kubectl prints for each kind, states in one word, and ages.

`kcm get` and the API server's tables use it.
"""
