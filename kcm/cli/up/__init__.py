"""The command `kcm up`, which runs and supervises everything on one machine.

One `kcm up` runs for each state folder. Each process is the leader of its own process group, and is
restarted with back-off when it exits. All are stopped together, Redis last, within 5 s. None is
left running, even if the supervisor is killed.
"""
