"""Authentication, impersonation, RBAC and access reviews.

Every request is authenticated and authorized before it is handled, also one for an unknown path.
Decisions read the watch caches, not the store, so they are as fresh as the caches (milliseconds).
Tokens are compared in constant time and appear in no log. A running watch does not end when the
permission for it is revoked: as upstream, requests are checked when they begin.
"""
