"""Which users are nodes.

Source: pkg/auth/nodeidentifier/default.go, Kubernetes 1.33.
"""

from __future__ import annotations

from kcm.apiserver.auth.attributes import NODES, User

NODE_PREFIX = "system:node:"


def node_of(user: User) -> str | None:
    """Returns the name of the node that a user is, "" if the name is missing.

    Returns None for a user that is no node.
    """
    if not user.name.startswith(NODE_PREFIX) or NODES not in user.groups:
        return None
    return user.name.removeprefix(NODE_PREFIX)
