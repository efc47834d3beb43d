"""The command `kcm up`: everything on one machine, supervised.

Guarantees: one `kcm up` per state folder. Each process runs in a group of its own and is started
again when it ends, with growing pauses. All are stopped together, Redis last, within 5 s, and none
is left behind, whatever happens to the supervisor.
"""
