"""Rotates a certificate: requests a new one after 70 to 90 % of the old one's life.

Guarantees: while no new certificate is issued, the old one stays in use, and it is requested again
with growing pauses.

Source: staging/src/k8s.io/client-go/util/certificate/certificate_manager.go, Kubernetes 1.33.
Departure: the life begins when the certificate was obtained, since signers date the beginning of
its validity back by five minutes, and short certificates would be due at once.
"""

from __future__ import annotations

import random
import threading
from collections.abc import Callable
from dataclasses import dataclass
from datetime import datetime, timedelta
from typing import Protocol

import structlog

from kcm import errors
from kcm.clock import Clock
from kcm.kubelet.certificates.requests import Requester, Template, encode_key, new_key
from kcm.kubelet.certificates.store import Certificate, CertificateStore

log = structlog.get_logger("kcm.kubelet")

_EARLIEST, _SPREAD = 0.7, 0.2  # of a certificate's life
_BACK_OFF = (2.0, 4.0, 8.0, 16.0, 32.0)  # seconds after failures; the last one is repeated
_BACK_OFF_JITTER = 0.1
_LOOK_EVERY = 10.0  # seconds between looks at the clock and at the template


class RotationMetrics(Protocol):
    """Records what upstream's metrics show about one certificate."""

    def set_expiry(self, not_after: datetime | None) -> None: ...

    def observe_rotation(self, age: float) -> None:
        """Records the age in seconds of a certificate that was replaced."""
        ...

    def count_error(self) -> None: ...


@dataclass(frozen=True, kw_only=True)
class CertificateManager:
    """Keeps the newest certificate of a store young.

    `template` returns what it shall say, None while that is not known. `rotated` is called after
    each new certificate.
    """

    store: CertificateStore
    template: Callable[[], Template | None]
    requester: Requester
    rotated: Callable[[], None]
    metrics: RotationMetrics
    clock: Clock
    random: random.Random

    def run(self, stop: threading.Event) -> None:
        """Rotates the certificate until `stop` is set."""
        current = self.store.read_current()
        self.metrics.set_expiry(current.not_after if current else None)
        deadline = self.next_rotation(current)
        failures = 0
        while not stop.is_set():
            template = self.template()
            if template is None or not self._is_due(current, deadline, template):
                left = (deadline - self.clock.now()).total_seconds()
                self.clock.wait(stop, min(max(left, 0.0), _LOOK_EVERY) or _LOOK_EVERY)
                continue
            try:
                current = self.rotate(template, current)
            except errors.KcmError as error:
                self.metrics.count_error()
                log.warning("Certificate request failed", error=str(error), name=template.signer)
                self.clock.wait(stop, self._back_off(failures))
                failures += 1
                continue
            failures, deadline = 0, self.next_rotation(current)

    def rotate(self, template: Template, old: Certificate | None) -> Certificate:
        """Gets a new certificate, and makes it the newest.

        Raises ApiError, ConfigurationError, RefusedRequest and Temporary.
        """
        key = new_key()
        pem = self.requester.request(template, key)
        now = self.clock.now()
        new = self.store.write(pem, encode_key(key), now)
        if old is not None:
            self.metrics.observe_rotation((now - old.not_before).total_seconds())
        self.metrics.set_expiry(new.not_after)
        log.info("Certificate rotated", name=new.common_name, not_after=f"{new.not_after}")
        self.rotated()
        return new

    def next_rotation(self, current: Certificate | None) -> datetime:
        """Returns when a certificate is to be replaced, now if there is none."""
        if current is None:
            return self.clock.now()
        begin = max(current.not_before, min(current.obtained, current.not_after))
        share = _EARLIEST + _SPREAD * self.random.random()
        return begin + timedelta(seconds=(current.not_after - begin).total_seconds() * share)

    def _is_due(self, current: Certificate | None, deadline: datetime, template: Template) -> bool:
        if current is None or self.clock.now() >= deadline:
            return True
        return current.common_name != template.common_name or not template.hosts <= current.hosts

    def _back_off(self, failures: int) -> float:
        seconds = _BACK_OFF[min(failures, len(_BACK_OFF) - 1)]
        return seconds * (1 + _BACK_OFF_JITTER * self.random.random())
