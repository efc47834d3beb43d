"""Operators as their authors write them: they know nothing of kcm."""
