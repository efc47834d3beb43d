"""Service account tokens: fills Secrets of type kubernetes.io/service-account-token.

Such a Secret gets a token, the certificates of the API server and its namespace. It is deleted when
its account is gone. When it is gone, its account no longer refers to it.

Source: pkg/controller/serviceaccount/tokens_controller.go, Kubernetes 1.33. Departure: upstream
gives up a key after 10 failures; here it is retried with back-off.
"""

from __future__ import annotations

import base64
from collections.abc import Iterable
from dataclasses import dataclass
from pathlib import Path
from typing import Any
from urllib.parse import quote, unquote

from pydantic import Field

from kcm.api.core_v1 import Secret, ServiceAccount
from kcm.helpers.serviceaccount.claims import LEGACY_ISSUER, legacy_claims
from kcm.helpers.serviceaccount.root_ca import read_bundle
from kcm.helpers.serviceaccount.tokens import parse_signing_key, read_pem, sign
from kcm.sdk import (
    Absent,
    Change,
    Controller,
    Delete,
    DeleteOptions,
    Options,
    Patch,
    Plan,
    Update,
    View,
    Watch,
    shared_option,
)

TYPE = "kubernetes.io/service-account-token"
ACCOUNT_NAME = "kubernetes.io/service-account.name"
ACCOUNT_UID = "kubernetes.io/service-account.uid"
TOKEN, NAMESPACE, ROOT_CA = "token", "namespace", "ca.crt"
_FLAG = "service-account-private-key-file"


class ServiceAccountTokenOptions(Options):
    """The options of the service account token controller."""

    concurrent_serviceaccount_token_syncs: int = Field(
        default=5,
        ge=1,
        description="The number of service account token objects that are allowed to sync "
        "concurrently. Larger number = more responsive token generation, but more CPU (and "
        "network) load",
    )
    service_account_private_key_file: str = Field(
        default="",
        description="Filename containing a PEM-encoded private RSA or ECDSA key used to sign "
        "service account tokens.",
    )
    root_ca_file: str = shared_option("", "root-ca-certificate-publisher-controller")


@dataclass(frozen=True)
class SecretKey:
    """A Secret, and the account that it names. As a text, it is a key of this controller."""

    namespace: str
    name: str
    uid: str
    account_name: str
    account_uid: str

    @classmethod
    def of(cls, secret: Secret) -> SecretKey:
        """Returns the key of a Secret."""
        annotations = secret.annotations
        return cls(
            secret.namespace or "",
            secret.name,
            secret.uid,
            annotations.get(ACCOUNT_NAME, ""),
            annotations.get(ACCOUNT_UID, ""),
        )

    @classmethod
    def parse(cls, key: str) -> SecretKey | None:
        """Returns what a key says, or None for a text that is no key of this controller."""
        parts = [unquote(part) for part in key.split("/")]
        return cls(*parts) if len(parts) == 5 else None

    def __str__(self) -> str:
        parts = (self.namespace, self.name, self.uid, self.account_name, self.account_uid)
        return "/".join(quote(part, safe="") for part in parts)

    def matches(self, account: ServiceAccount | None) -> bool:
        """Reports whether this is the account that the Secret names."""
        return account is not None and self.account_uid in ("", account.uid)


class ServiceAccountTokenController(Controller):
    """Fills, deletes and forgets Secrets with tokens. A key is a `SecretKey`."""

    name = "serviceaccount-token-controller"
    short_name = "serviceaccounttoken"
    options_type = ServiceAccountTokenOptions
    options: ServiceAccountTokenOptions

    def __init__(self, options: ServiceAccountTokenOptions | None = None) -> None:
        """Raises ConfigurationError if a file of the options cannot be read."""
        super().__init__(options)
        file = self.options.service_account_private_key_file
        self._pem = read_pem(Path(file), _FLAG) if file else b""
        self._root_ca = _encode(read_bundle(self.options.root_ca_file))

    def missing_option(self) -> str:
        return "" if self._pem else f"--{_FLAG} is not set"

    def concurrent_syncs(self) -> int:
        return self.options.concurrent_serviceaccount_token_syncs

    def watches(self) -> tuple[Watch[Any], ...]:
        return (Watch(Secret, key_of_token), Watch(ServiceAccount, tokens_of_lost_account))

    def reconcile(self, key: str, view: View) -> Plan:
        wanted = SecretKey.parse(key)
        if wanted is None or not wanted.account_name:
            return Plan()
        secret = view.lister(Secret).find(f"{wanted.namespace}/{wanted.name}")
        account = view.lister(ServiceAccount).find(f"{wanted.namespace}/{wanted.account_name}")
        mine = account if account is not None and wanted.matches(account) else None
        if secret is None or secret.uid != wanted.uid:
            return _remove_reference(mine, wanted.name, secret)
        if not is_token(secret) or SecretKey.of(secret) != wanted:
            return Plan()  # it has another key by now
        if mine is None:
            name = f"{wanted.namespace}/{wanted.account_name}"
            guards = (Absent("serviceaccounts", name),) if account is None else ()
            return Plan().then(Delete(secret, DeleteOptions(uid=secret.uid), guards))
        return self._fill(secret, mine)

    def _fill(self, secret: Secret, account: ServiceAccount) -> Plan:
        data = dict(secret.data or {})
        if self._root_ca:
            data[ROOT_CA] = self._root_ca
        if not data.get(NAMESPACE):
            data[NAMESPACE] = _encode(secret.namespace or "")
        if not data.get(TOKEN):
            claims = legacy_claims(account, secret)
            data[TOKEN] = _encode(sign(parse_signing_key(self._pem), LEGACY_ISSUER, claims))
        if data == (secret.data or {}):
            return Plan()
        named = {ACCOUNT_NAME: account.name, ACCOUNT_UID: account.uid}
        new = secret.with_metadata(annotations={**secret.annotations, **named})
        return Plan().then(Update(new.replace(data=data), secret))


def is_token(secret: Secret) -> bool:
    """Reports whether a Secret is for a token of a service account."""
    return secret.type == TYPE


def key_of_token(change: Change[Secret], view: View) -> Iterable[str]:
    """Yields the key of a Secret for a token."""
    secret = change.object
    if is_token(secret):
        yield str(SecretKey.of(secret))


def tokens_of_lost_account(change: Change, view: View) -> Iterable[str]:
    """Yields the keys of the Secrets of an account that was deleted or made anew."""
    old, new = change.old, change.new
    if old is None or (new is not None and new.uid == old.uid):
        return
    for secret in view.lister(Secret).list(old.namespace):
        if is_token(secret) and secret.annotations.get(ACCOUNT_NAME) == old.name:
            yield str(SecretKey.of(secret))


def _remove_reference(account: ServiceAccount | None, name: str, other: Secret | None) -> Plan:
    """Removes the reference to a Secret that is gone, unless there is another one of its name."""
    if account is None or other is not None or not _refers(account, name):
        return Plan()

    def change(old: ServiceAccount) -> ServiceAccount:
        if old.uid != account.uid:
            return old
        return old.replace(secrets=[ref for ref in old.secrets or () if ref.name != name] or None)

    return Plan().then(Patch(account, change))


def _refers(account: ServiceAccount, name: str) -> bool:
    return any(reference.name == name for reference in account.secrets or ())


def _encode(text: str) -> str:
    return base64.b64encode(text.encode()).decode()
