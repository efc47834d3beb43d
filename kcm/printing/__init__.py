"""How kubectl shows objects: columns, states in one word, ages. Used by `kcm get` and by the
API server's tables."""
