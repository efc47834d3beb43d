"""When certificates rotate, after upstream's certificate_manager_test.go."""

from __future__ import annotations

import random
import threading
from collections.abc import Callable
from datetime import UTC, datetime, timedelta
from pathlib import Path

import pytest
from prometheus_client import CollectorRegistry, generate_latest

from kcm import errors
from kcm.kubelet.certificates.bootstrap import client_template, serving_template
from kcm.kubelet.certificates.manager import CertificateManager, Requester, Template
from kcm.kubelet.certificates.metrics import ClientMetrics, ServerMetrics
from kcm.kubelet.certificates.store import CLIENT, SERVER, Certificate, CertificateStore
from kcm.testing.clock import FakeClock
from tests.unit.kubelet.certificates.signing_server import SigningServer

START = datetime(2026, 1, 1, tzinfo=UTC)


class Rig:
    """A manager of one certificate, its server and its clock. It stops at a time."""

    def __init__(self, folder: Path, template: Callable[[], Template | None], prefix: str) -> None:
        self.clock = FakeClock(START)
        self.stop = threading.Event()
        self.server = SigningServer(self.clock.now)
        self.store = CertificateStore(folder, prefix)
        self.registry = CollectorRegistry()
        kind = ClientMetrics if prefix == CLIENT else ServerMetrics
        self.rotations: list[datetime] = []
        self.manager = CertificateManager(
            store=self.store,
            template=template,
            requester=Requester(self.server, self.clock, self.stop),
            rotated=self._note,
            metrics=kind(self.registry, self.clock),
            clock=self.clock,
            random=random.Random(7),
        )
        self.most = 1

    def _note(self) -> None:
        self.rotations.append(self.clock.now())
        if len(self.rotations) >= self.most:
            self.stop.set()

    def run(self, rotations: int = 1) -> None:
        self.most = rotations
        self.manager.run(self.stop)

    def metric(self, name: str) -> float:
        lines = generate_latest(self.registry).decode().splitlines()
        return float(next(line for line in lines if line.startswith(name)).rpartition(" ")[2])


def client(folder: Path) -> Rig:
    return Rig(folder, lambda: client_template("n1"), CLIENT)


# Source: TestSetRotationDeadline
@pytest.mark.parametrize(
    ("not_before", "not_after"),
    [
        (timedelta(hours=-24), timedelta(hours=-6)),  # outdated
        (timedelta(hours=-1), timedelta(hours=12)),
        (timedelta(hours=-24 * 365), timedelta(hours=24 * 365)),
        (timedelta(0), timedelta(seconds=10)),
    ],
)
def test_a_deadline_is_within_70_and_90_percent(
    tmp_path: Path, not_before: timedelta, not_after: timedelta
) -> None:
    rig = client(tmp_path)
    begin, end = START + not_before, START + not_after
    certificate = Certificate("x", begin, begin, end, frozenset())
    for _ in range(50):
        share = (rig.manager.next_rotation(certificate) - begin) / (end - begin)
        assert 0.7 <= share <= 0.9


def test_a_short_certificate_that_was_dated_back_is_not_due_at_once(tmp_path: Path) -> None:
    rig = client(tmp_path)
    rig.server.life = timedelta(seconds=12)
    rig.run(rotations=3)
    gaps = [
        later - earlier for earlier, later in zip(rig.rotations, rig.rotations[1:], strict=False)
    ]
    assert len(gaps) == 2
    assert all(timedelta(seconds=8) < gap < timedelta(seconds=12) for gap in gaps)


def test_without_a_certificate_one_is_requested_at_once(tmp_path: Path) -> None:
    rig = client(tmp_path)
    rig.run()
    assert rig.rotations == [START]
    current = rig.store.read_current()
    assert current is not None
    assert current.common_name == "system:node:n1"
    assert rig.metric("kubelet_certificate_manager_client_ttl_seconds") == 86400


def test_failures_are_counted_and_the_pauses_grow(tmp_path: Path) -> None:
    rig = client(tmp_path)
    rig.server.fails = [errors.StoreUnavailable("away")] * 3
    rig.run()
    (rotated,) = rig.rotations
    assert timedelta(seconds=14) <= rotated - START <= timedelta(seconds=14 * 1.1)
    name = "kubelet_certificate_manager_client_expiration_renew_errors_total"
    assert rig.metric(name) == 3


def test_a_denied_request_leaves_the_old_certificate_in_use(tmp_path: Path) -> None:
    rig = client(tmp_path)
    rig.run()
    before = rig.store.read_current()
    rig.server.status = {"conditions": [{"type": "Denied", "reason": "No", "message": "never"}]}
    with pytest.raises(errors.KcmError, match="is denied, reason: No, message: never"):
        rig.manager.rotate(client_template("n1"), before)
    assert rig.store.read_current() == before


@pytest.mark.parametrize("answer", ["x", "bm9uZQ=="])
def test_an_answer_that_is_no_certificate_leaves_the_old_one_in_use(
    tmp_path: Path, answer: str
) -> None:
    rig = client(tmp_path)
    rig.run()
    before = rig.store.read_current()
    rig.server.status = {"certificate": answer}
    with pytest.raises(errors.KcmError):  # which `run` counts, and tries again
        rig.manager.rotate(client_template("n1"), before)
    assert rig.store.read_current() == before


def test_a_new_address_makes_a_new_serving_certificate(tmp_path: Path) -> None:
    addresses = ["10.0.0.1"]
    rig = Rig(tmp_path, lambda: serving_template("n1", ("n1",), tuple(addresses)), SERVER)
    rig.run()
    addresses[0] = "10.0.0.2"
    rig.stop.clear()
    rig.run(rotations=2)
    current = rig.store.read_current()
    assert current is not None
    assert current.hosts == {"n1", "10.0.0.2"}


def test_the_age_of_a_serving_certificate_is_recorded(tmp_path: Path) -> None:
    rig = Rig(tmp_path, lambda: serving_template("n1", ("n1",), ("10.0.0.1",)), SERVER)
    rig.run(rotations=2)
    ages = "kubelet_certificate_manager_server_rotation_seconds"
    assert rig.metric(f"{ages}_count") == 1
    assert rig.metric(f'{ages}_bucket{{le="14400.0"}}') == 0
    assert rig.metric(f'{ages}_bucket{{le="86400.0"}}') == 1
    assert 86399 <= rig.metric("kubelet_certificate_manager_server_ttl_seconds") <= 86400


def test_nothing_is_requested_while_the_template_is_unknown(tmp_path: Path) -> None:
    rig = client(tmp_path)
    looks = 0

    def later() -> Template | None:
        nonlocal looks
        looks += 1
        return client_template("n1") if looks > 3 else None

    rig = Rig(tmp_path, later, CLIENT)
    rig.run()
    assert rig.rotations[0] > START
