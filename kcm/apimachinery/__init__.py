"""Values and grammars that know no kind: quantities, times, labels, names, schedules.

Upstream's module of the same name holds the same things.
"""
