"""Who asks, and what they may do: authentication, impersonation, RBAC and reviews.

Guarantees: nothing is answered before its request was authenticated and authorized, unknown paths
included. No decision asks the store, so one is as fresh as the watch caches (milliseconds). Tokens
are compared in constant time and appear in no log. Does not guarantee that a running watch ends
when the right to it is revoked: as upstream, requests are checked when they begin.
"""
