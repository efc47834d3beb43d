"""Authentication by bootstrap tokens, with which a machine joins the cluster.

Source: plugin/pkg/auth/authenticator/token/bootstrap/bootstrap.go, Kubernetes 1.33.
"""

from __future__ import annotations

import hmac

from kcm.api.core_v1 import Secret
from kcm.apiserver.auth.authenticators import Credentials
from kcm.apiserver.auth.service_accounts import Find
from kcm.apiserver.auth.users import User
from kcm.clock import Clock, RealClock
from kcm.helpers.bootstrap_tokens import (
    FOR_AUTHENTICATION,
    NAMESPACE,
    PREFIX,
    USER_PREFIX,
    has_expired,
    is_bootstrap_token,
    parse_token,
    read_groups,
    read_value,
)


class BootstrapTokens:
    """Authenticates users by tokens whose Secrets are in kube-system."""

    def __init__(self, find: Find, clock: Clock | None = None) -> None:
        self._find = find
        self._clock = clock or RealClock()

    def authenticate(self, given: Credentials) -> User | None:
        """Returns the user, or None if the request has no valid bootstrap token."""
        return self.user_of(given.token) if given.token else None

    def user_of(self, token: str) -> User | None:
        """Returns the user of a bootstrap token, None for any other token."""
        parsed = parse_token(token)
        if parsed is None:
            return None
        token_id, token_secret = parsed
        secret = self._find(Secret, f"{NAMESPACE}/{PREFIX}{token_id}")
        if not isinstance(secret, Secret) or secret.deleting or not is_bootstrap_token(secret):
            return None
        known = read_value(secret, "token-secret")
        if not hmac.compare_digest(known.encode(), token_secret.encode()):
            return None
        if read_value(secret, "token-id") != token_id or has_expired(secret, self._clock.now()):
            return None
        groups = read_groups(secret)
        if read_value(secret, FOR_AUTHENTICATION) != "true" or groups is None:
            return None
        return User(f"{USER_PREFIX}{token_id}", groups=groups)
