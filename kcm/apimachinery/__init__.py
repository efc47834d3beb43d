"""Types and grammars that do not depend on any kind: quantities, times, labels, names, schedules.

Upstream's module of this name has the same purpose.
"""
