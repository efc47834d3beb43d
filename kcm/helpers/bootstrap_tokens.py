"""Bootstrap tokens: Secrets in kube-system with which a machine joins a cluster.

A token is `ID.SECRET`, its Secret is called `bootstrap-token-ID`.
Source: staging/src/k8s.io/cluster-bootstrap and pkg/controller/bootstrap/util.go, Kubernetes 1.33.
"""

from __future__ import annotations

import base64
import binascii
import hashlib
import hmac
import json
import re
import secrets
import string
from collections.abc import Sequence
from datetime import datetime

from kcm.api.core_v1 import Secret
from kcm.apimachinery.meta_v1 import ObjectMeta, format_time, parse_time

TYPE = "bootstrap.kubernetes.io/token"
NAMESPACE = "kube-system"
PREFIX = "bootstrap-token-"
GROUP = "system:bootstrappers"
NODE_TOKEN_GROUP = f"{GROUP}:kcm:default-node-token"  # may request certificates of new nodes
USER_PREFIX = "system:bootstrap:"
FOR_SIGNING, FOR_AUTHENTICATION = "usage-bootstrap-signing", "usage-bootstrap-authentication"

USAGES = ("signing", "authentication")

_LETTERS = string.ascii_lowercase + string.digits
_TOKEN = re.compile(r"([a-z0-9]{6})\.([a-z0-9]{16})")
_ID = re.compile(r"[a-z0-9]{6}")
_NAME = re.compile(rf"{PREFIX}([a-z0-9]{{6}})")
_EXTRA_GROUP = re.compile(r"system:bootstrappers:[a-z0-9:-]{0,255}[a-z0-9]")
_SHORTEST_KEY = 32  # bytes; shorter ones are padded, as upstream's library needs it


def generate_token() -> str:
    """Returns a new random token."""
    pick = secrets.choice
    return ".".join("".join(pick(_LETTERS) for _ in range(length)) for length in (6, 16))


def build_secret(
    token: str, *, expires: datetime | None, usages: Sequence[str], groups: Sequence[str],
    description: str = "",
) -> Secret:  # fmt: skip
    """Returns the Secret of a token, which has no end if `expires` is None.

    Raises ValueError for a text that is no token, and for usages and groups that no token may have.
    """
    parsed = parse_token(token)
    if parsed is None:
        raise ValueError(f"the token must be of the form {_TOKEN.pattern}")
    values = {"token-id": parsed[0], "token-secret": parsed[1]}
    if description:
        values["description"] = description
    if expires is not None:
        values["expiration"] = format_time(expires)
    for usage in usages:
        if usage not in USAGES:
            raise ValueError(f"the usage {usage!r} is not one of {', '.join(USAGES)}")
        values[f"usage-bootstrap-{usage}"] = "true"
    for group in groups:
        if not _EXTRA_GROUP.fullmatch(group):
            raise ValueError(f"the group {group!r} is not of the form {_EXTRA_GROUP.pattern}")
    if groups:
        values["auth-extra-groups"] = ",".join(sorted(set(groups)))
    data = {name: base64.b64encode(value.encode()).decode() for name, value in values.items()}
    metadata = ObjectMeta(name=f"{PREFIX}{parsed[0]}", namespace=NAMESPACE)
    return Secret(metadata=metadata, type=TYPE, data=data)


def read_usages(secret: Secret) -> list[str]:
    """Returns what a token may be used for, sorted."""
    return [
        usage
        for usage in sorted(USAGES)
        if read_value(secret, f"usage-bootstrap-{usage}") == "true"
    ]


def parse_token(token: str) -> tuple[str, str] | None:
    """Returns the id and the secret of a bootstrap token, None for any other text."""
    match = _TOKEN.fullmatch(token)
    return (match[1], match[2]) if match else None


def parse_id(text: str) -> str | None:
    """Returns the id of a token that is named by its id or whole, None for any other text."""
    parsed = parse_token(text)
    if parsed is not None:
        return parsed[0]
    return text if _ID.fullmatch(text) else None


def is_bootstrap_token(secret: Secret) -> bool:
    """Reports whether the Secret holds a bootstrap token."""
    return secret.type == TYPE and secret.namespace == NAMESPACE


def read_value(secret: Secret, name: str) -> str:
    """Returns a value of the Secret as text, "" if it is missing or no text."""
    try:
        encoded = (secret.data or {}).get(name, "")
        return base64.b64decode(encoded, validate=True).decode()
    except (binascii.Error, ValueError):
        return ""


def seconds_left(secret: Secret, now: datetime) -> float | None:
    """Returns the seconds until the token expires, None for a token without an end.

    They are 0 or less for one that has expired, or whose expiration cannot be read.
    """
    text = read_value(secret, "expiration")
    if not text:
        return None
    try:
        return (parse_time(text) - now).total_seconds()
    except ValueError:
        return 0.0


def has_expired(secret: Secret, now: datetime) -> bool:
    """Reports whether the token has expired."""
    left = seconds_left(secret, now)
    return left is not None and left <= 0


def read_signing_token(secret: Secret, now: datetime) -> tuple[str, str] | None:
    """Returns the id and the secret of a token with which cluster-info may be signed, or None."""
    match = _NAME.fullmatch(secret.name)
    token_id, token_secret = read_value(secret, "token-id"), read_value(secret, "token-secret")
    if match is None or not token_secret or token_id != match[1]:
        return None
    if has_expired(secret, now) or read_value(secret, FOR_SIGNING) != "true":
        return None
    return token_id, token_secret


def read_groups(secret: Secret) -> tuple[str, ...] | None:
    """Returns the groups of the token's user, sorted. Returns None if one is not allowed."""
    extra = read_value(secret, "auth-extra-groups")
    names = extra.split(",") if extra else []
    if not all(map(_EXTRA_GROUP.fullmatch, names)):
        return None
    return tuple(sorted({GROUP, *names}))


def sign_detached(content: str, token_id: str, token_secret: str) -> str:
    """Returns the JSON web signature (HS256) of a text without the text itself (RFC 7515, F)."""
    header = _encode(json.dumps({"alg": "HS256", "kid": token_id}, separators=(",", ":")).encode())
    key = token_secret.encode().ljust(_SHORTEST_KEY, b"\0")
    signed = f"{header}.{_encode(content.encode())}".encode()
    return f"{header}..{_encode(hmac.digest(key, signed, hashlib.sha256))}"


def _encode(data: bytes) -> str:
    return base64.urlsafe_b64encode(data).rstrip(b"=").decode()
