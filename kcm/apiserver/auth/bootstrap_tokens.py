"""Authentication by bootstrap tokens, with which a machine joins the cluster.

Source: plugin/pkg/auth/authenticator/token/bootstrap/bootstrap.go, Kubernetes 1.33.
"""

from __future__ import annotations

import hmac
import threading
from collections import OrderedDict

import structlog

from kcm.api.core_v1 import Secret
from kcm.apiserver.auth.attributes import User
from kcm.apiserver.auth.authenticators import Credentials
from kcm.apiserver.auth.service_accounts import Find
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

log = structlog.get_logger("kcm.apiserver")

MOST_GUESSES = 20  # wrong tokens of one address, which get one more each GUESS_EVERY seconds
GUESS_EVERY = 3.0  # seconds
_MOST_ADDRESSES = 1024  # that are remembered


class _Guesses:
    """Counts the wrong tokens of each address: a bucket that is emptied and fills again."""

    def __init__(self, clock: Clock) -> None:
        self._clock = clock
        self._full_at: OrderedDict[str, float] = OrderedDict()  # on the monotonic clock
        self._lock = threading.Lock()

    def may_guess(self, address: str) -> bool:
        """Reports whether a token from this address is looked at."""
        empty_for = self._full_at.get(address, 0.0) - self._clock.monotonic()
        return empty_for <= (MOST_GUESSES - 1) * GUESS_EVERY

    def count(self, address: str) -> None:
        """Takes a wrong token from this address, and logs if no more are looked at for now."""
        with self._lock:
            now = self._clock.monotonic()
            self._full_at[address] = max(self._full_at.get(address, now), now) + GUESS_EVERY
            self._full_at.move_to_end(address)
            if len(self._full_at) > _MOST_ADDRESSES:
                self._full_at.popitem(last=False)
        if not self.may_guess(address):
            log.warning("Too many wrong bootstrap tokens came from an address", address=address)


class BootstrapTokens:
    """Authenticates users by tokens whose Secrets are in kube-system.

    After MOST_GUESSES wrong tokens of one address further ones are looked at slowly, and are
    refused in between whether they are right or not. Upstream has no such limit.
    """

    def __init__(self, find: Find, clock: Clock | None = None) -> None:
        self._find = find
        self._clock = clock or RealClock()
        self._guesses = _Guesses(self._clock)

    def authenticate(self, given: Credentials) -> User | None:
        """Returns the user, or None if the request has no valid bootstrap token."""
        if not given.token or parse_token(given.token) is None:
            return None
        if not self._guesses.may_guess(given.peer):
            return None
        user = self.user_of(given.token)
        if user is None:
            self._guesses.count(given.peer)
        return user

    def user_of(self, token: str) -> User | None:
        """Returns the user of a bootstrap token, None for any other token."""
        parsed = parse_token(token)
        if parsed is None:
            return None
        token_id, token_secret = parsed
        secret = self._find(Secret, f"{NAMESPACE}/{PREFIX}{token_id}")
        if not isinstance(secret, Secret) or secret.deleting or not is_bootstrap_token(secret):
            return None
        expected = read_value(secret, "token-secret")
        if not hmac.compare_digest(expected.encode(), token_secret.encode()):
            return None
        if read_value(secret, "token-id") != token_id or has_expired(secret, self._clock.now()):
            return None
        groups = read_groups(secret)
        if read_value(secret, FOR_AUTHENTICATION) != "true" or groups is None:
            return None
        return User(f"{USER_PREFIX}{token_id}", groups=groups)
