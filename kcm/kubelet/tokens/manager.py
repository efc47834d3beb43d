"""Keeps the tokens of pods, and requests new ones before they expire.

A token is renewed when 80 % of its time are over, or after a day. While none can be requested, one
that is still valid is used.

Source: pkg/kubelet/token/token_manager.go, Kubernetes 1.33.
"""

from __future__ import annotations

import json
import random
import threading
from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from datetime import datetime, timedelta
from typing import Any, Protocol

import structlog

from kcm import errors
from kcm.api.core_v1 import Node, Pod, ServiceAccount
from kcm.apimachinery.meta_v1 import KubeObject
from kcm.clock import Clock
from kcm.helpers.serviceaccount.claims import BoundObjects
from kcm.helpers.serviceaccount.tokens import Issuer
from kcm.store.objects import ObjectStore

log = structlog.get_logger("kcm.kubelet")

MAX_AGE = timedelta(hours=24)
MAX_JITTER = 10.0  # seconds
_SWEEP_EVERY = 60.0  # seconds between removals of expired tokens


@dataclass(frozen=True)
class IssuedToken:
    """A token, when it expires, and for how many seconds it was requested."""

    text: str = field(repr=False)
    expires: datetime
    seconds: int

    def is_due(self, now: datetime, jitter: timedelta) -> bool:
        """Reports whether a new one is to be requested."""
        issued = self.expires - timedelta(seconds=self.seconds)
        left = timedelta(seconds=self.seconds * 20 // 100)
        return now > issued + MAX_AGE - jitter or now > self.expires - left - jitter


class TokenSource(Protocol):
    """Issues tokens that are bound to pods."""

    def request(self, pod: Pod, audience: str, seconds: int) -> IssuedToken:
        """Returns a new token for the pod's account; "" is the API server's own audience.

        Raises Temporary and ApiError.
        """
        ...


@dataclass(frozen=True)
class _Wanted:
    """Which token: for two pods of one account there are two."""

    uid: str
    account: str
    audience: str
    seconds: int


class TokenManager:
    """Keeps the tokens of a node's pods. Thread-safe."""

    def __init__(self, source: TokenSource, clock: Clock, rng: random.Random | None = None) -> None:
        self._source = source
        self._clock = clock
        self._rng = rng or random.Random()
        self._lock = threading.Lock()
        self._tokens: dict[_Wanted, IssuedToken] = {}
        self._swept_at = clock.monotonic()

    def token(self, pod: Pod, audience: str, seconds: int) -> str:
        """Returns a valid token of the pod's account. Raises ContainerConfigError."""
        self._sweep()
        wanted = _Wanted(pod.uid, pod.spec.service_account_name or "default", audience, seconds)
        with self._lock:
            cached = self._tokens.get(wanted)
        now = self._clock.now()
        jitter = timedelta(seconds=self._rng.random() * MAX_JITTER)
        if cached is not None and not cached.is_due(now, jitter):
            return cached.text
        try:
            fresh = self._source.request(pod, audience, seconds)
        except (errors.Temporary, errors.ApiError) as error:
            if cached is None:
                raise errors.ContainerConfigError(
                    f"failed to fetch token: {error.message}"
                ) from error
            if now > cached.expires:
                raise errors.ContainerConfigError(
                    f"token expired and refresh failed: {error.message}"
                ) from error
            log.warning("Couldn't update token", pod=pod.key, error=error.message)
            return cached.text
        with self._lock:
            self._tokens[wanted] = fresh
        return fresh.text

    def _sweep(self) -> None:
        """Forgets tokens that have expired, such as those of pods that are gone."""
        moment = self._clock.monotonic()
        if moment - self._swept_at < _SWEEP_EVERY:
            return
        now = self._clock.now()
        with self._lock:
            self._swept_at = moment
            self._tokens = {of: kept for of, kept in self._tokens.items() if kept.expires > now}


# --- Where a kubelet gets tokens from: an API server, or the key itself.
#
# A kubelet that works on Redis can write everything there, so it is trusted with the key, too. One
# that works for an API server requests tokens of it, as upstream.


Post = Callable[[str, Mapping[str, Any]], bytes]
"""Sends a body to a path of an API server, and returns the body of its response."""


class SignedTokens:
    """Signs tokens itself, after a look at the account and the node in the store."""

    def __init__(self, store: ObjectStore, issuer: Issuer, clock: Clock) -> None:
        self._store = store
        self._issuer = issuer
        self._clock = clock

    def request(self, pod: Pod, audience: str, seconds: int) -> IssuedToken:
        """Returns a new token. Raises NotFound for a missing account, and StoreUnavailable."""
        name = pod.spec.service_account_name or "default"
        node_name = pod.spec.node_name or ""
        account, node = self._read(f"{pod.namespace}/{name}", node_name)
        now = self._clock.now()
        text = self._issuer.issue(
            account,
            BoundObjects(pod=pod, node=node or Node().with_metadata(name=node_name)),
            now,
            audiences=[audience] if audience else self._issuer.audiences,
            seconds=seconds,
        )
        return IssuedToken(text, now + timedelta(seconds=seconds), seconds)

    def _read(self, key: str, node_name: str) -> tuple[ServiceAccount, Node | None]:
        wanted = [
            (ServiceAccount.resource, key),
            (Node.resource, node_name),
        ]
        objects: list[KubeObject | None] = list(self._store.get_all(wanted))
        account, node = objects
        if not isinstance(account, ServiceAccount):
            raise errors.NotFound.of("serviceaccounts", key.partition("/")[2])
        return account, node if isinstance(node, Node) else None


class RequestedTokens:
    """Requests tokens of an API server."""

    def __init__(self, post: Post) -> None:
        self._post = post

    def request(self, pod: Pod, audience: str, seconds: int) -> IssuedToken:
        """Returns a new token. Raises ApiError and Temporary."""
        name = pod.spec.service_account_name or "default"
        path = f"/api/v1/namespaces/{pod.namespace}/serviceaccounts/{name}/token"
        reference = {"apiVersion": "v1", "kind": "Pod", "name": pod.name, "uid": pod.uid}
        spec: dict[str, Any] = {"expirationSeconds": seconds, "boundObjectRef": reference}
        if audience:
            spec["audiences"] = [audience]
        body = {"apiVersion": "authentication.k8s.io/v1", "kind": "TokenRequest", "spec": spec}
        try:
            answer = json.loads(self._post(path, body))
            status, given = answer["status"], answer["spec"]["expirationSeconds"]
            expires = datetime.fromisoformat(status["expirationTimestamp"])
            return IssuedToken(str(status["token"]), expires, int(given))
        except (ValueError, KeyError, TypeError) as error:
            raise errors.StoreUnavailable(f"the answer is no TokenRequest: {error}") from None


class NoTokens:
    """Issues no tokens, and says why."""

    def request(self, pod: Pod, audience: str, seconds: int) -> IssuedToken:
        """Raises ContainerConfigError."""
        raise errors.ContainerConfigError(
            "this node has no key for service account tokens: name one with "
            "--service-account-signing-key-file, or use --kubeconfig"
        )
