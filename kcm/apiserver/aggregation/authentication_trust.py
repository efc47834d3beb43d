"""The ConfigMap kube-system/extension-apiserver-authentication, by which servers of other APIs know
whom to trust: the authorities of clients, and that of the front proxy, with its headers.

Several API servers may run: each adds its own authorities, and removes none that is still valid.

Source: pkg/controlplane/controller/clusterauthenticationtrust, Kubernetes 1.33. Departure: a
ConfigMap that somebody has filled with something else is written anew.
"""

from __future__ import annotations

import json
from collections.abc import Iterable, Mapping
from dataclasses import dataclass
from datetime import UTC, datetime, timedelta
from pathlib import Path

import structlog
from cryptography import x509
from cryptography.hazmat.primitives.serialization import Encoding

from kcm import errors
from kcm.api.core_v1 import ConfigMap
from kcm.apimachinery.meta_v1 import ObjectMeta
from kcm.apiserver.aggregation.identity import EXTRA, GROUP, UID, USER
from kcm.store import Store

log = structlog.get_logger("kcm.apiserver")

NAMESPACE, NAME = "kube-system", "extension-apiserver-authentication"
ALLOWED_NAME = "front-proxy-client"
EVERY = 60.0  # seconds between two looks at the ConfigMap
_CLIENT_CA, _PROXY_CA = "client-ca-file", "requestheader-client-ca-file"
_LISTS: Mapping[str, str] = {
    "requestheader-username-headers": USER,
    "requestheader-uid-headers": UID,
    "requestheader-group-headers": GROUP,
    "requestheader-extra-headers-prefix": EXTRA,
}
_NAMES = "requestheader-allowed-names"
_SLACK = timedelta(minutes=5)  # after the end of a certificate
_MOST_CERTIFICATES = 100


@dataclass(frozen=True)
class TrustedAuthorities:
    """Files with the certificates of the authorities of clients, and of the front proxy."""

    clients: Path | None = None
    front_proxy: Path | None = None
    allowed_names: tuple[str, ...] = (ALLOWED_NAME,)  # of the front proxy's certificates


def build_data(
    authorities: TrustedAuthorities, present: Mapping[str, str], now: datetime
) -> dict[str, str]:
    """Returns what the ConfigMap has to say, with what it says at present.

    Raises ConfigurationError if a file cannot be read.
    """
    data: dict[str, str] = {}
    if clients := _combine(present.get(_CLIENT_CA, ""), authorities.clients, now):
        data[_CLIENT_CA] = clients
    if proxy := _combine(present.get(_PROXY_CA, ""), authorities.front_proxy, now):
        for field, header in _LISTS.items():
            data[field] = _add(present.get(field, ""), [header])
        data[_PROXY_CA] = proxy
        data[_NAMES] = _add(present.get(_NAMES, ""), authorities.allowed_names)
    return data


def _add(text: str, more: Iterable[str]) -> str:
    """Returns a list of words, as JSON, with further words."""
    try:
        listed = json.loads(text or "[]")
    except (ValueError, RecursionError):
        listed = []
    words = [word for word in listed if isinstance(word, str)] if isinstance(listed, list) else []
    return json.dumps(list(dict.fromkeys([*words, *more])), separators=(",", ":"))


def _combine(present: str, path: Path | None, now: datetime) -> str:
    """Returns the valid certificates of a text and of a file, each once."""
    own: list[x509.Certificate] = []
    if path is not None:
        try:
            own = x509.load_pem_x509_certificates(path.read_bytes())
        except (OSError, ValueError) as error:
            raise errors.ConfigurationError(f"the authorities in {path}: {error}") from None
    certificates = [*_parse(present), *own]
    valid = [one for one in certificates if one.not_valid_after_utc > now - _SLACK]
    encoded = dict.fromkeys(one.public_bytes(Encoding.PEM).decode() for one in valid)
    return "".join(list(encoded)[-_MOST_CERTIFICATES:])


def _parse(text: str) -> list[x509.Certificate]:
    try:
        return x509.load_pem_x509_certificates(text.encode()) if text else []
    except ValueError:
        return []


def ensure(store: Store, authorities: TrustedAuthorities, now: datetime | None = None) -> None:
    """Creates or corrects the ConfigMap. Raises ConfigurationError and StoreUnavailable."""
    resource, key = ConfigMap.resource, f"{NAMESPACE}/{NAME}"
    moment = now or datetime.now(UTC)

    def change(old: ConfigMap) -> ConfigMap:
        return old.replace(data=build_data(authorities, old.data or {}, moment))

    present = store.find(resource, key)
    try:
        if not isinstance(present, ConfigMap):
            metadata = ObjectMeta(name=NAME, namespace=NAMESPACE)
            store.create(ConfigMap(metadata=metadata, data=build_data(authorities, {}, moment)))
        elif change(present) != present:
            store.modify(resource, key, change)
    except errors.ApiError as error:  # another server was faster, or the object is damaged
        log.info("The ConfigMap for other API servers was not written", error=error.message)
