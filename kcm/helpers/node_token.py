"""Derives the tokens with which API servers authenticate to the HTTP APIs of nodes.

The key is in a Secret of the cluster. A token is derived from it for a node's name, address and
port. So if an API server is led to a false address, the token that it sends there is not valid for
the node.

A kubelet that can read the key may also prove that a loopback address is its own. API servers
send no request to a loopback address without that proof, since every program that listens there
trusts its machine. A kubelet that joined with a token of its own cannot read the key.
"""

from __future__ import annotations

import base64
import hashlib
import hmac
import random
from contextlib import suppress

from kcm import errors
from kcm.api.core_v1 import Secret
from kcm.apimachinery.meta_v1 import ObjectMeta
from kcm.store.objects import ObjectStore

NAMESPACE, NAME = "kube-system", "kubelet-api-key"
TLS_ANNOTATION = "kcm.dev/kubelet-tls"  # "false" on nodes whose HTTP API is served without TLS
PROOF_ANNOTATION = "kcm.dev/kubelet-address-proof"  # what `prove_address` returns
_FIELD = "key"
_BYTES = 32


def read_key(store: ObjectStore) -> bytes | None:
    """Returns the key, or None if there is none, or none in base64. Raises: StoreUnavailable."""
    secret = store.find(Secret.resource, f"{NAMESPACE}/{NAME}")
    text = (secret.data or {}).get(_FIELD) if secret is not None else None
    with suppress(ValueError):
        return base64.b64decode(text or "") or None
    return None


def ensure_key(store: ObjectStore, rng: random.Random | None = None) -> bytes:
    """Returns the key, and creates it if it is missing: drawn from `rng`, by default from the
    system. Raises: StoreUnavailable, Forbidden.
    """
    drawn = (rng or random.SystemRandom()).randbytes(_BYTES)
    while (key := read_key(store)) is None:
        data = {_FIELD: base64.b64encode(drawn).decode()}
        made = Secret(metadata=ObjectMeta(name=NAME, namespace=NAMESPACE), data=data, type="Opaque")
        try:
            store.write([store.build_create(made)])[0].get_stored()
        except errors.AlreadyExists:  # another process created it, or it has no key
            if read_key(store) is None:
                raise errors.Forbidden(
                    f"the Secret {NAMESPACE}/{NAME} has no key in its field {_FIELD!r}: delete it"
                ) from None
    return key


def derive_token(key: bytes, node: str, host: str, port: int) -> str:
    """Returns the bearer token for the API that a node serves at an address."""
    return _sign(key, f"kubelet {node} {host} {port}")


def prove_address(key: bytes, node: str, host: str, port: int) -> str:
    """Returns the proof that the API at an address is served by that node's kubelet.

    It is no secret: it stands in an annotation of the node.
    """
    return _sign(key, f"address {node} {host} {port}")


def is_proven(key: bytes, proof: str, node: str, host: str, port: int) -> bool:
    """Reports whether `proof` is what `prove_address` returns for the address."""
    return hmac.compare_digest(proof.encode(), prove_address(key, node, host, port).encode())


def _sign(key: bytes, text: str) -> str:
    return hmac.new(key, text.encode(), hashlib.sha256).hexdigest()
