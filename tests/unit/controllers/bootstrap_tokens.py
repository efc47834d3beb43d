"""Secrets of bootstrap tokens, for tests."""

from __future__ import annotations

import base64

from kcm.api.core_v1 import Secret
from kcm.apimachinery.meta_v1 import ObjectMeta


def token_secret(token_id: str = "abcdef", **fields: str) -> Secret:
    """Returns the Secret of a token with these further values, where `_` stands for `-`."""
    values = {
        "token-id": token_id,
        "token-secret": "0123456789abcdef",
        "usage-bootstrap-signing": "true",
        **{name.replace("_", "-"): text for name, text in fields.items()},
    }
    return Secret(
        metadata=ObjectMeta(
            name=f"bootstrap-token-{token_id}", namespace="kube-system", uid=f"u-{token_id}"
        ),
        type="bootstrap.kubernetes.io/token",
        data={name: base64.b64encode(text.encode()).decode() for name, text in values.items()},
    )
