"""`AccessControl`: who may do what on one server, put together from its options.

Source: pkg/kubeapiserver/authenticator/config.go and pkg/controlplane/apiserver/config.go,
Kubernetes 1.33.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass, replace

from kcm.apiserver.auth.access import AccessRules
from kcm.apiserver.auth.authorizer import (
    ALWAYS_ALLOW,
    ALWAYS_DENY,
    DEFAULT_MODES,
    NODE,
    AlwaysAllow,
    AlwaysDeny,
    Authorizer,
    Masters,
    Union,
)
from kcm.apiserver.auth.bootstrap_tokens import BootstrapTokens
from kcm.apiserver.auth.node.authorizer import NodeAuthorizer
from kcm.apiserver.auth.node.graph_feed import GraphFeed
from kcm.apiserver.auth.node.restriction import NodeRestriction
from kcm.apiserver.auth.rbac import RBAC
from kcm.apiserver.auth.service_accounts import ServiceAccountTokens, TokenOptions, find_in
from kcm.apiserver.auth.token_review import TokenReviewer
from kcm.apiserver.auth.token_tracking import TokenTracker
from kcm.apiserver.cache.cacher import Cacher
from kcm.helpers.serviceaccount.tokens import DEFAULT_ISSUER
from kcm.store import Store

# --- The modes of --authorization-mode: which authorizers decide, in which order.
#
# Source: pkg/kubeapiserver/authorizer/config.go, Kubernetes 1.33.


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


@dataclass(frozen=True)
class AuthOptions:
    """How users are authenticated and authorized.

    `modes` are the modes of authorization; without AlwaysAllow, system:masters may do everything,
    and NodeRestriction checks the writes of nodes. An `authorizer` takes the place of the modes.
    Without `tokens`, service account tokens are neither issued nor accepted. With
    `bootstrap_tokens`, bootstrap tokens are accepted.
    """

    modes: Sequence[str] = DEFAULT_MODES
    authorizer: Authorizer | None = None
    tokens: TokenOptions | None = None
    bootstrap_tokens: bool = False


class AccessControl:
    """The authenticators and the authorizer of one server."""

    def __init__(
        self,
        store: Store,
        cacher: Cacher,
        access: AccessRules,
        options: AuthOptions,
        count_token_use: Callable[[str], None],
    ) -> None:
        """`access` has the authenticators that need no store."""
        find, tokens = find_in(cacher), options.tokens
        self.tokens = tokens
        self.token_tracker = TokenTracker(store)
        accounts: ServiceAccountTokens | None = None
        if tokens is not None:
            uses = self.token_tracker.note_use
            accounts = ServiceAccountTokens(tokens, find, uses, store.clock, count=count_token_use)
        joining = BootstrapTokens(find, store.clock) if options.bootstrap_tokens else None
        authenticators = (joining, *access.further, accounts)
        further = tuple(one for one in authenticators if one is not None)
        self.access = replace(access, further=further)
        audiences = tokens.audiences if tokens is not None else (DEFAULT_ISSUER,)
        self.reviewer = TokenReviewer(access.tokens, accounts, audiences, joining)
        self.authorizer = options.authorizer or build_authorizer(options.modes, cacher)
        restricts = options.authorizer is None and ALWAYS_ALLOW not in options.modes
        self.restriction = NodeRestriction(find) if restricts else None
