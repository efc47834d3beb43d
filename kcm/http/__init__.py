"""HTTP, both sides: the servers' sockets and upgrades, and the requests to other servers.

Every request that kcm sends goes out from here: `transport` sends it from an event loop, `blocking`
from a thread. Both have the trust of `trust`, the limits of `limits`, and the errors of `faults`.
"""
