"""Authentication by service account tokens.

The objects that a token names are read from the watch caches at each request, so a token ends with
its account, its Secret, its pod or its node, as fast as the caches are fresh (milliseconds).

Source: pkg/serviceaccount/{jwt,claims,legacy}.go, pkg/kubeapiserver/authenticator/config.go and
staging/src/k8s.io/apiserver/pkg/authentication/serviceaccount/util.go, Kubernetes 1.33. Departure:
no warning is sent with a response to a request with the token of a generated Secret.
"""

from __future__ import annotations

import base64
import hmac
from collections.abc import Callable, Sequence
from dataclasses import dataclass, field
from datetime import UTC, datetime, timedelta
from typing import TypeVar

from kcm.api.core_v1 import Node, Pod, Secret, ServiceAccount
from kcm.apimachinery.meta_v1 import KubeObject
from kcm.apiserver.auth.attributes import (
    User,
    quote_list,
    service_account,
    service_account_groups,
    service_account_name,
)
from kcm.apiserver.auth.authenticators import Credentials
from kcm.apiserver.cache.cacher import Cacher
from kcm.apiserver.http_errors import Unauthorized
from kcm.clock import Clock, RealClock
from kcm.helpers.serviceaccount import claims as token_claims
from kcm.helpers.serviceaccount.claims import (
    LEEWAY,
    LEGACY_ISSUER,
    BoundClaims,
    Claims,
    LegacyClaims,
    Reference,
)
from kcm.helpers.serviceaccount.tokens import (
    InvalidToken,
    Issuer,
    SigningKey,
    VerificationKey,
    Verifier,
)

CREDENTIAL_ID = "authentication.kubernetes.io/credential-id"
POD_NAME = "authentication.kubernetes.io/pod-name"
POD_UID = "authentication.kubernetes.io/pod-uid"
NODE_NAME = "authentication.kubernetes.io/node-name"
NODE_UID = "authentication.kubernetes.io/node-uid"
INVALID_SINCE = "kubernetes.io/legacy-token-invalid-since"
# What upstream counts; the names of its metrics without `serviceaccount_` and `_total`.
LEGACY, STALE, VALID = "legacy_tokens", "stale_tokens", "valid_tokens"
AUTO, MANUAL = "legacy_auto_token_uses", "legacy_manual_token_uses"
INVALID_AUTO = "invalid_legacy_auto_token_uses"
_INVALIDATED = "service account token has been invalidated"
_LEGACY_INVALIDATED = "Token has been invalidated"

T = TypeVar("T", bound=KubeObject)
Find = Callable[[type[KubeObject], str], KubeObject | None]


@dataclass(frozen=True)
class TokenOptions:
    """How the server issues and accepts service account tokens.

    The first issuer is that of new tokens; all are accepted. `audiences` are those of this server.
    `max_expiration` is in seconds, 0 for no limit.
    """

    signing_key: SigningKey = field(repr=False)
    keys: tuple[VerificationKey, ...]
    issuers: tuple[str, ...]
    audiences: tuple[str, ...]
    max_expiration: int = 0
    extend_expiration: bool = True
    jwks_uri: str = ""

    @property
    def issuer(self) -> Issuer:
        """The issuer of new tokens."""
        return Issuer(self.signing_key, self.issuers[0], self.audiences, self.extend_expiration)


def find_in(cacher: Cacher) -> Find:
    """Returns a function that finds an object by its kind and key in the watch caches."""

    def find(model: type[KubeObject], key: str) -> KubeObject | None:
        entry = cacher.cache(model.resource).get(key)
        return None if entry is None else entry.obj

    return find


class ServiceAccountTokens:
    """Authenticates service accounts by their tokens. `saw_use` is called with each Secret whose
    token was used, `count` with the name of what upstream counts about tokens.
    """

    def __init__(
        self,
        options: TokenOptions,
        find: Find,
        saw_use: Callable[[Secret], None] = lambda secret: None,
        clock: Clock | None = None,
        *,
        count: Callable[[str], None] = lambda name: None,
    ) -> None:
        self._count = count
        self._options = options
        self._find = find
        self._saw_use = saw_use
        self._clock = clock or RealClock()
        self._verifier = Verifier(options.keys)

    def authenticate(self, given: Credentials) -> User | None:
        """Returns the user, or None if the request has no service account token.

        Raises Unauthorized if it has one that is not valid for this server.
        """
        if not given.token:
            return None
        try:
            accepted = self.check(given.token, self._options.audiences)
        except InvalidToken:
            raise Unauthorized from None
        return None if accepted is None else accepted[0]

    def check(self, token: str, wanted: Sequence[str]) -> tuple[User, list[str]] | None:
        """Returns the user of a token, and which of the wanted audiences the token is for.

        Returns None if it is no service account token of this cluster. Raises InvalidToken with the
        reason, in upstream's words.
        """
        options = self._options
        claims = self._verifier.verify(token, {*options.issuers, LEGACY_ISSUER})
        if claims is None:
            return None
        own = token_claims.audiences_of(claims)
        if not own:
            self._count(LEGACY)
            own = list(options.audiences)
        audiences = [name for name in own if name in wanted]
        if not audiences:
            raise InvalidToken(
                f"token audiences {quote_list(own)} is invalid for the target audiences "
                f"{quote_list(wanted)}"
            )
        if claims.get("iss") == LEGACY_ISSUER:
            return self._check_legacy(token, LegacyClaims.read(claims)), audiences
        return self._check_bound(claims), audiences

    # --- bound tokens

    def _check_bound(self, claims: Claims) -> User:
        now = self._clock.now()
        if fault := token_claims.find_time_fault(claims, now):
            raise InvalidToken(fault)
        bound = BoundClaims.read(claims)
        alive_since = now - timedelta(seconds=LEEWAY)
        self._check_account(bound, alive_since)
        extra: list[tuple[str, tuple[str, ...]]] = []
        if bound.jti:
            extra.append((CREDENTIAL_ID, (f"JTI={bound.jti}",)))
        if bound.secret is not None:
            self._check_reference(Secret, bound.secret, bound.namespace, alive_since)
        if bound.pod is not None:
            self._check_reference(Pod, bound.pod, bound.namespace, alive_since)
            extra += [(POD_NAME, (bound.pod.name,)), (POD_UID, (bound.pod.uid,))]
        if bound.node is not None:
            if bound.pod is None:
                self._check_reference(Node, bound.node, "", alive_since)
            extra.append((NODE_NAME, (bound.node.name,)))
            if bound.node.uid:
                extra.append((NODE_UID, (bound.node.uid,)))
        if (stale_from := token_claims.warn_after(claims)) is not None:
            self._count(STALE if now.timestamp() > stale_from else VALID)
        return _user(bound.namespace, bound.account, tuple(extra))

    def _check_account(self, bound: BoundClaims, alive_since: datetime) -> None:
        name, where = bound.account, f"{bound.namespace}/{bound.account.name}"
        account = self._get(ServiceAccount, where)
        if account is None:
            raise InvalidToken(f'serviceaccounts "{name.name}" not found')
        if account.uid != name.uid:
            raise InvalidToken(
                f"service account UID ({account.uid}) does not match claim ({name.uid})"
            )
        if _deleted_before(account, alive_since):
            raise InvalidToken(f"service account {where} has been deleted")

    def _check_reference(
        self, model: type[KubeObject], named: Reference, namespace: str, alive_since: datetime
    ) -> None:
        obj = self._find(model, f"{namespace}/{named.name}" if namespace else named.name)
        if obj is None:
            raise InvalidToken(_INVALIDATED)
        if obj.uid != named.uid:
            kind = model.resource.singular
            raise InvalidToken(
                f"{kind} UID ({obj.uid}) does not match service account {kind} ref claim "
                f"({named.uid})"
            )
        if _deleted_before(obj, alive_since):
            raise InvalidToken(_INVALIDATED)

    # --- tokens of Secrets

    def _check_legacy(self, token: str, claims: LegacyClaims) -> User:
        _require_legacy_claims(claims)
        named, namespace = claims.account, claims.namespace
        secret = self._get(Secret, f"{namespace}/{claims.secret}")
        if secret is None or secret.deleting:
            raise InvalidToken(_LEGACY_INVALIDATED)
        stored = (secret.data or {}).get("token", "")
        if not hmac.compare_digest(_decode(stored), token.encode("utf-8", "surrogateescape")):
            raise InvalidToken("Token does not match server's copy")
        where = f"{namespace}/{named.name}"
        account = self._get(ServiceAccount, where)
        if account is None:
            raise InvalidToken(f'serviceaccounts "{named.name}" not found')
        if account.deleting:
            raise InvalidToken(f"ServiceAccount {where} has been deleted")
        if account.uid != named.uid:
            raise InvalidToken(
                f"ServiceAccount UID ({account.uid}) does not match claim ({named.uid})"
            )
        self._note_legacy_use(secret, account)
        return _user(namespace, named, ())

    def _note_legacy_use(self, secret: Secret, account: ServiceAccount) -> None:
        """Notes the use of a Secret's token. Raises InvalidToken if it was marked invalid."""
        self._saw_use(secret)
        if secret.labels.get(INVALID_SINCE):
            self._count(INVALID_AUTO)
            raise InvalidToken(
                f"the token in secret {secret.key} for service account {account.key} has been "
                "marked invalid. Use tokens from the TokenRequest API or manually created "
                f"secret-based tokens, or remove the '{INVALID_SINCE}' label from the secret to "
                "temporarily allow use of this token"
            )
        generated = any(reference.name == secret.name for reference in account.secrets or ())
        self._count(AUTO if generated else MANUAL)

    def _get(self, model: type[T], key: str) -> T | None:
        obj = self._find(model, key)
        return obj if isinstance(obj, model) else None


def _require_legacy_claims(claims: LegacyClaims) -> None:
    """Raises InvalidToken unless all claims are there and name one account."""
    for name, value in (
        ("sub", claims.subject),
        ("namespace", claims.namespace),
        ("secretName", claims.secret),
        ("serviceAccountName", claims.account.name),
        ("serviceAccountUID", claims.account.uid),
    ):
        if not value:
            raise InvalidToken(f"{name} claim is missing")
    if service_account(claims.subject) != (claims.namespace, claims.account.name):
        raise InvalidToken("sub claim is invalid")


def _user(
    namespace: str, account: Reference, extra: tuple[tuple[str, tuple[str, ...]], ...]
) -> User:
    name = service_account_name(namespace, account.name)
    return User(name, account.uid, service_account_groups(namespace), extra)


def _deleted_before(obj: KubeObject, moment: datetime) -> bool:
    deleted = obj.metadata.deletion_timestamp
    return deleted is not None and deleted.astimezone(UTC) < moment


def _decode(text: str) -> bytes:
    try:
        return base64.b64decode(text)
    except ValueError:
        return b""
