"""Finds out whom a token authenticates, for a TokenReview.

Source: pkg/registry/authentication/tokenreview/storage.go and
staging/src/k8s.io/apiserver/pkg/authentication/authenticator/audagnostic.go, Kubernetes 1.33.
"""

from __future__ import annotations

from collections.abc import Sequence

from kcm.apiserver.auth.attributes import User
from kcm.apiserver.auth.authenticators import Tokens
from kcm.apiserver.auth.bootstrap_tokens import BootstrapTokens
from kcm.apiserver.auth.service_accounts import ServiceAccountTokens
from kcm.helpers.serviceaccount.tokens import DEFAULT_ISSUER, InvalidToken

_UNKNOWN = "invalid bearer token"


class TokenReviewer:
    """Checks tokens of all kinds. `audiences` are those of this server."""

    def __init__(
        self,
        tokens: Tokens,
        accounts: ServiceAccountTokens | None = None,
        audiences: Sequence[str] = (DEFAULT_ISSUER,),
        joining: BootstrapTokens | None = None,
    ) -> None:
        self._tokens = tokens
        self._accounts = accounts
        self._audiences = tuple(audiences)
        self._joining = joining

    def review(self, token: str, wanted: Sequence[str]) -> tuple[User, list[str]]:
        """Returns the user of a token, and which of the wanted audiences the token is for.

        Without wanted audiences, the token must be for this server, and no audiences are returned.
        Tokens that name no audience are for this server. Raises InvalidToken.
        """
        if (user := self._tokens.user_of(token)) is not None:
            return user, self._own_audiences(wanted)
        if self._joining is not None and (user := self._joining.user_of(token)) is not None:
            return user, self._own_audiences(wanted)
        if self._accounts is not None:
            try:
                accepted = self._accounts.check(token, wanted or self._audiences)
            except InvalidToken as error:
                raise InvalidToken(f"[{_UNKNOWN}, {error.message}]") from None
            if accepted is not None:
                return accepted[0], accepted[1] if wanted else []
        raise InvalidToken(_UNKNOWN)

    def _own_audiences(self, wanted: Sequence[str]) -> list[str]:
        if not wanted:
            return []
        if shared := [name for name in self._audiences if name in wanted]:
            return shared
        raise InvalidToken(
            f"the audiences of the token, {list(self._audiences)}, are not among those requested"
        )
