"""`kcm up`: everything on one machine, supervised.

Guarantees: one `kcm up` per state folder; each process in a group of its own,
started again when it ends, with growing pauses; all stopped together, Redis
last, within 5 s; none left behind, whatever happens to the supervisor.
"""
