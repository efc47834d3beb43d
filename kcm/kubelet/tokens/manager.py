"""Keeps the tokens of pods, and requests new ones before they expire.

A token is renewed when 80 % of its time are over, or after a day. While none can be requested, one
that is still valid is used.

Source: pkg/kubelet/token/token_manager.go, Kubernetes 1.33.
"""

from __future__ import annotations

import random
import threading
from dataclasses import dataclass, field
from datetime import datetime, timedelta
from typing import Protocol

import structlog

from kcm import errors
from kcm.api.core_v1 import Pod
from kcm.clock import Clock

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
            known = self._tokens.get(wanted)
        now = self._clock.now()
        jitter = timedelta(seconds=self._rng.random() * MAX_JITTER)
        if known is not None and not known.is_due(now, jitter):
            return known.text
        try:
            fresh = self._source.request(pod, audience, seconds)
        except (errors.Temporary, errors.ApiError) as error:
            if known is None:
                raise errors.ContainerConfigError(
                    f"failed to fetch token: {error.message}"
                ) from error
            if now > known.expires:
                raise errors.ContainerConfigError(
                    f"token expired and refresh failed: {error.message}"
                ) from error
            log.warning("Couldn't update token", pod=pod.key, error=error.message)
            return known.text
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
