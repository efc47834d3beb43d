"""The documents by which others verify this cluster's tokens, after OpenID Connect discovery.

Source: pkg/serviceaccount/openidmetadata.go and pkg/routes/openidmetadata.go, Kubernetes 1.33.
"""

from __future__ import annotations

import base64
from collections.abc import Sequence
from typing import Any

from kcm.helpers.serviceaccount.tokens import VerificationKey

CONFIGURATION_PATH = "/.well-known/openid-configuration"
JWKS_PATH = "/openid/v1/jwks"
JWKS_TYPE = "application/jwk-set+json"
CACHE_CONTROL = "public, max-age=3600"


def configuration(issuer: str, jwks_uri: str, keys: Sequence[VerificationKey]) -> dict[str, Any]:
    """Returns the configuration document of an issuer."""
    return {
        "issuer": issuer,
        "jwks_uri": jwks_uri,
        "response_types_supported": ["id_token"],
        "subject_types_supported": ["public"],
        "id_token_signing_alg_values_supported": sorted({key.algorithm for key in keys}),
    }


def key_set(keys: Sequence[VerificationKey]) -> dict[str, Any]:
    """Returns the public keys as a JSON web key set."""
    return {"keys": [_web_key(key) for key in keys]}


def _web_key(key: VerificationKey) -> dict[str, str]:
    common = {"use": "sig", "kid": key.id, "alg": key.algorithm}
    numbers = key.public.public_numbers()
    if key.algorithm == "RS256":
        size = (numbers.n.bit_length() + 7) // 8
        return common | {"kty": "RSA", "n": _encode(numbers.n, size), "e": _encode(numbers.e, 0)}
    size = (key.public.curve.key_size + 7) // 8
    curve = f"P-{key.public.curve.key_size}"
    x, y = _encode(numbers.x, size), _encode(numbers.y, size)
    return common | {"kty": "EC", "crv": curve, "x": x, "y": y}


def _encode(number: int, size: int) -> str:
    size = size or (number.bit_length() + 7) // 8
    return base64.urlsafe_b64encode(number.to_bytes(size, "big")).rstrip(b"=").decode()
