"""The claims of service account tokens, bound and legacy ones.

Source: pkg/serviceaccount/claims.go and pkg/serviceaccount/legacy.go, Kubernetes 1.33.
"""

from __future__ import annotations

import uuid
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from datetime import datetime
from typing import Any

from kcm.api.core_v1 import Node, Pod, Secret, ServiceAccount
from kcm.apimachinery.meta_v1 import KubeObject

Claims = Mapping[str, Any]

LEGACY_ISSUER = "kubernetes/serviceaccount"
WARN_ONLY_SECONDS = 3607  # the expiry of tokens that admission mounts; such ones are extended
EXTENDED_SECONDS = 24 * 365 * 60 * 60
LEEWAY = 60  # seconds that clocks may differ
_PRIVATE = "kubernetes.io"
_LEGACY = "kubernetes.io/serviceaccount"
_SUBJECT = "system:serviceaccount:"


@dataclass(frozen=True)
class Reference:
    """The name and the uid of an object in a token."""

    name: str
    uid: str


@dataclass(frozen=True)
class BoundObjects:
    """The objects that a token is bound to. A pod may come with its node, for information."""

    pod: Pod | None = None
    secret: Secret | None = None
    node: Node | None = None


@dataclass(frozen=True)
class BoundClaims:
    """What a bound token says about its account and about the objects it is bound to."""

    namespace: str
    account: Reference
    pod: Reference | None
    secret: Reference | None
    node: Reference | None
    jti: str

    @classmethod
    def read(cls, claims: Claims) -> BoundClaims:
        """Returns the claims of a verified token. Fields that are missing are empty."""
        private = _mapping(claims.get(_PRIVATE))
        return cls(
            namespace=_text(private.get("namespace")),
            account=_reference(private.get("serviceaccount")) or Reference("", ""),
            pod=_reference(private.get("pod")),
            secret=_reference(private.get("secret")),
            node=_reference(private.get("node")),
            jti=_text(claims.get("jti")),
        )


@dataclass(frozen=True)
class LegacyClaims:
    """What a token of a Secret says: its account and its Secret."""

    subject: str
    namespace: str
    account: Reference
    secret: str

    @classmethod
    def read(cls, claims: Claims) -> LegacyClaims:
        """Returns the claims of a verified token. Fields that are missing are empty."""

        def field(name: str) -> str:
            return _text(claims.get(f"{_LEGACY}/{name}"))

        return cls(
            subject=_text(claims.get("sub")),
            namespace=field("namespace"),
            account=Reference(field("service-account.name"), field("service-account.uid")),
            secret=field("secret.name"),
        )


def bound_claims(
    account: ServiceAccount,
    bound: BoundObjects,
    audiences: Sequence[str],
    now: datetime,
    *,
    seconds: int,
    warn_after: int = 0,
) -> dict[str, Any]:
    """Returns the claims of a token that expires `seconds` seconds after `now`.

    `warn_after` is the number of seconds after which its use counts as that of a stale token, 0
    for never.
    """
    issued = int(now.timestamp())
    private: dict[str, Any] = {
        "namespace": account.namespace,
        "serviceaccount": {"name": account.name, "uid": account.uid},
    }
    for name, obj in (("node", bound.node), ("pod", bound.pod), ("secret", bound.secret)):
        if obj is not None:
            private[name] = _named(obj)
    if warn_after:
        private["warnafter"] = issued + warn_after
    return {
        "aud": list(audiences),
        "exp": issued + seconds,
        "iat": issued,
        "jti": str(uuid.uuid4()),
        _PRIVATE: private,
        "nbf": issued,
        "sub": _subject(account),
    }


def legacy_claims(account: ServiceAccount, secret: Secret) -> dict[str, Any]:
    """Returns the claims of the token in a Secret, which does not expire."""
    return {
        f"{_LEGACY}/namespace": account.namespace,
        f"{_LEGACY}/secret.name": secret.name,
        f"{_LEGACY}/service-account.name": account.name,
        f"{_LEGACY}/service-account.uid": account.uid,
        "sub": _subject(account),
    }


def find_time_fault(claims: Claims, now: datetime) -> str:
    """Returns why a token is not valid now, "" if it is. Clocks may differ by LEEWAY."""
    moment = now.timestamp()
    if _number(claims.get("exp"), moment) < moment - LEEWAY:
        return "service account token has expired"
    if _number(claims.get("nbf"), moment) > moment + LEEWAY:
        return "service account token is not valid yet"
    if _number(claims.get("iat"), moment) > moment + LEEWAY:
        return "service account token is issued in the future"
    return ""


def audiences_of(claims: Claims) -> list[str]:
    """Returns the audiences of a token, [] if it names none."""
    value = claims.get("aud")
    if isinstance(value, str):
        return [value]
    return [name for name in value if isinstance(name, str)] if isinstance(value, list) else []


def warn_after(claims: Claims) -> float | None:
    """Returns the time, in seconds since 1970, after which the token is stale, or None."""
    value = _mapping(claims.get(_PRIVATE)).get("warnafter")
    return float(value) if isinstance(value, int | float) and value else None


def _subject(account: ServiceAccount) -> str:
    return f"{_SUBJECT}{account.namespace}:{account.name}"


def _named(obj: KubeObject) -> dict[str, str]:
    return {"name": obj.name, **({"uid": obj.uid} if obj.uid else {})}


def _reference(value: object) -> Reference | None:
    given = _mapping(value)
    return Reference(_text(given.get("name")), _text(given.get("uid"))) if given else None


def _mapping(value: object) -> Mapping[str, Any]:
    return value if isinstance(value, dict) else {}


def _text(value: object) -> str:
    return value if isinstance(value, str) else ""


def _number(value: object, default: float) -> float:
    return float(value) if isinstance(value, int | float) else default
