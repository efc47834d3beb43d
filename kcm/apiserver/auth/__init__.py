"""Who asks, and what they may do: authentication, impersonation, RBAC, reviews.

Guarantees: nothing is answered before its request was authenticated and
authorized, unknown paths included; no decision asks the store, so one is as
fresh as the watch caches (milliseconds); tokens are compared in constant time
and appear in no log. Does not guarantee that a watch which runs ends when the
right to it is taken away: like upstream, requests are checked when they begin.
"""
