"""How kubectl shows objects: columns, states in one word, ages.

`kcm get` and the API server's tables use it.
"""
