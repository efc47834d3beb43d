"""The modes of --authorization-mode: which authorizers decide, in which order.

Source: pkg/kubeapiserver/authorizer/config.go, Kubernetes 1.33.
"""

from __future__ import annotations

from collections.abc import Sequence

from kcm.apiserver.auth.authorizer import (
    ALWAYS_ALLOW,
    ALWAYS_DENY,
    NODE,
    AlwaysAllow,
    AlwaysDeny,
    Authorizer,
    Masters,
    Union,
)
from kcm.apiserver.auth.node.authorizer import NodeAuthorizer
from kcm.apiserver.auth.node.graph_feed import GraphFeed
from kcm.apiserver.auth.rbac import RBAC
from kcm.apiserver.cache.cacher import Cacher


def build_authorizer(modes: Sequence[str], caches: Cacher) -> Authorizer:
    """Returns the authorizer of these modes, which ask one another in their order.

    system:masters may do everything in each of them.
    """
    if tuple(modes) == (ALWAYS_ALLOW,):
        return AlwaysAllow()
    authorizers = [_build(mode, caches) for mode in modes]
    return Masters(authorizers[0] if len(authorizers) == 1 else Union(authorizers))


def _build(mode: str, caches: Cacher) -> Authorizer:
    if mode == NODE:
        return NodeAuthorizer(GraphFeed(caches))
    if mode == ALWAYS_ALLOW:
        return AlwaysAllow()
    return AlwaysDeny() if mode == ALWAYS_DENY else RBAC(caches)
