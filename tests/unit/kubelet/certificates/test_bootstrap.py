"""How a kubelet gets its first certificate, after upstream's bootstrap_test.go."""

from __future__ import annotations

import threading
from datetime import UTC, datetime, timedelta
from pathlib import Path

import pytest
import yaml

from kcm import errors
from kcm.cli.token.joining import bootstrap_kubeconfig
from kcm.kubelet.certificates.bootstrap import Joining, join
from kcm.kubelet.certificates.manager import Sender
from kcm.kubelet.certificates.store import CLIENT, CertificateStore
from kcm.testing.clock import FakeClock
from tests.unit.kubelet.certificates.signing_server import SigningServer

START = datetime(2026, 1, 1, tzinfo=UTC)
TOKEN = "07401b.f395accd246ae52d"


class Machine:
    """A machine that joins, and the API server that it joins."""

    def __init__(self, folder: Path) -> None:
        admin = folder / "admin"
        cluster = {"server": "https://10.0.0.1:8001", "certificate-authority-data": "eA=="}
        admin.write_text(
            yaml.safe_dump(
                {
                    "clusters": [{"name": "c", "cluster": cluster}],
                    "contexts": [{"name": "x", "context": {"cluster": "c", "user": "u"}}],
                    "current-context": "x",
                }
            )
        )
        self.clock = FakeClock(START)
        self.server = SigningServer(self.clock.now)
        self.stop = threading.Event()
        bootstrap = folder / "join.kubeconfig"
        bootstrap.write_text(bootstrap_kubeconfig(admin, TOKEN))
        self.joining = Joining(
            kubeconfig=folder / "lib" / "kubelet" / "kubeconfig",
            cert_dir=folder / "pki",
            bootstrap_kubeconfig=bootstrap,
        )
        self.opened: list[Path] = []

    def _open(self, kubeconfig: Path) -> Sender:
        self.opened.append(kubeconfig)
        return self.server

    def join(self) -> bool:
        return join(self.joining, "n1", self._open, self.stop, self.clock)


@pytest.fixture
def machine(tmp_path: Path) -> Machine:
    return Machine(tmp_path)


def test_a_machine_without_a_certificate_requests_one(machine: Machine) -> None:
    assert machine.join()
    (request,) = machine.server.requests.values()
    assert request["metadata"]["name"].startswith("node-csr-")
    assert request["spec"]["signerName"] == "kubernetes.io/kube-apiserver-client-kubelet"
    assert request["spec"]["usages"] == ["digital signature", "client auth"]
    written = yaml.safe_load(machine.joining.kubeconfig.read_text())
    assert written["clusters"][0]["cluster"] == {
        "server": "https://10.0.0.1:8001",
        "certificate-authority-data": "eA==",
    }
    pem = str(machine.joining.cert_dir / "kubelet-client-current.pem")
    assert written["users"][0]["user"] == {"client-certificate": pem, "client-key": pem}
    assert machine.joining.kubeconfig.stat().st_mode & 0o777 == 0o600
    assert not (machine.joining.cert_dir / "kubelet-client.key.tmp").exists()


def test_a_machine_with_a_valid_certificate_requests_nothing(machine: Machine) -> None:
    machine.join()
    machine.opened.clear()
    assert machine.join()
    assert not machine.opened
    written = machine.joining.kubeconfig.read_bytes()
    machine.joining.kubeconfig.unlink()
    assert machine.join()
    assert not machine.opened
    assert machine.joining.kubeconfig.read_bytes() == written


def test_an_expired_certificate_is_requested_again(machine: Machine) -> None:
    machine.join()
    machine.clock.step(timedelta(days=2).total_seconds())
    assert machine.join()
    current = CertificateStore(machine.joining.cert_dir, CLIENT).read_current()
    assert current is not None
    assert current.not_after > machine.clock.now()


def test_the_same_request_is_waited_for_until_the_certificate_is_there(machine: Machine) -> None:
    machine.server.status = {"conditions": [{"type": "Denied"}]}
    with pytest.raises(errors.KcmError, match="is denied"):
        machine.join()
    key = (machine.joining.cert_dir / "kubelet-client.key.tmp").read_bytes()
    machine.server.status = None
    assert machine.join()
    assert len(machine.server.requests) == 1
    assert key.strip() in (machine.joining.cert_dir / "kubelet-client-current.pem").read_bytes()


def test_a_server_that_is_away_is_waited_for(machine: Machine) -> None:
    machine.server.fails = [errors.StoreUnavailable("away")] * 5
    assert machine.join()
    assert machine.clock.now() >= START + timedelta(seconds=10)


def test_a_machine_that_is_to_end_has_not_joined(machine: Machine) -> None:
    machine.server.fails = [errors.StoreUnavailable("away")]
    machine.stop.set()
    assert not machine.join()
    assert not machine.joining.kubeconfig.exists()


def test_a_token_without_rights_ends_the_start(machine: Machine) -> None:
    machine.server.fails = [errors.Forbidden("certificatesigningrequests is forbidden")]
    with pytest.raises(errors.ConfigurationError, match="kcm token create"):
        machine.join()
