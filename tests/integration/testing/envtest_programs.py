"""The programs of `kcm envtest assets`, started and asked as controller-runtime's envtest does it.

Run as a program, it is a suite that is about to be killed: it starts both and waits.
"""

from __future__ import annotations

import datetime
import json
import os
import socket
import ssl
import subprocess
import sys
import tempfile
import urllib.error
import urllib.request
from pathlib import Path
from typing import Any

from cryptography import x509
from cryptography.hazmat.primitives import hashes, serialization
from cryptography.hazmat.primitives.asymmetric import ec
from cryptography.x509.oid import NameOID

from kcm.clock import RealClock
from kcm.testing.envtest.assets import write_assets
from kcm.testing.waiting import until

TIMEOUT = 60.0  # seconds; envtest waits 20, on a machine of its own


def find_port() -> int:
    with socket.socket() as probe:
        probe.bind(("127.0.0.1", 0))
        return int(probe.getsockname()[1])


def make_certificate(path: Path, name: str, *, signer: Path | None = None, group: str = "") -> Path:
    """Writes PATH.crt and PATH.key: an authority, or what an authority has signed for a name."""
    key = ec.generate_private_key(ec.SECP256R1())
    attributes = [x509.NameAttribute(NameOID.COMMON_NAME, name)]
    attributes += [x509.NameAttribute(NameOID.ORGANIZATION_NAME, group)] if group else []
    subject, now = x509.Name(attributes), datetime.datetime.now(datetime.UTC)
    issuer, signing = subject, key
    if signer is not None:
        issuer = x509.load_pem_x509_certificate(signer.with_suffix(".crt").read_bytes()).subject
        loaded = serialization.load_pem_private_key(signer.with_suffix(".key").read_bytes(), None)
        assert isinstance(loaded, ec.EllipticCurvePrivateKey)
        signing = loaded
    made = (
        x509.CertificateBuilder()
        .subject_name(subject)
        .issuer_name(issuer)
        .public_key(key.public_key())
        .serial_number(x509.random_serial_number())
        .not_valid_before(now - datetime.timedelta(minutes=1))
        .not_valid_after(now + datetime.timedelta(days=1))
        .add_extension(x509.BasicConstraints(ca=signer is None, path_length=None), critical=True)
        .add_extension(x509.SubjectAlternativeName([x509.DNSName("localhost")]), critical=False)
        .sign(signing, hashes.SHA256())
    )
    path.with_suffix(".crt").write_bytes(made.public_bytes(serialization.Encoding.PEM))
    path.with_suffix(".key").write_bytes(
        key.private_bytes(
            serialization.Encoding.PEM,
            serialization.PrivateFormat.PKCS8,
            serialization.NoEncryption(),
        )
    )
    return path


class Suite:
    """What envtest does for one suite, with all files in one folder."""

    def __init__(self, folder: Path) -> None:
        self.folder = folder
        self.temporary = Path(tempfile.mkdtemp(prefix="e-"))  # short, as paths of sockets must be
        self.assets = folder / "assets"
        write_assets(self.assets)
        self.etcd_port, self.port = find_port(), find_port()
        self.certificates = folder / "certs"
        self.certificates.mkdir()
        authority = make_certificate(self.certificates / "serving-ca", "envtest-serving")
        make_certificate(self.certificates / "apiserver", "localhost", signer=authority)
        clients = make_certificate(self.certificates / "client-cert-auth-ca", "envtest-clients")
        make_certificate(self.certificates / "sa-signer", "envtest-accounts")
        self.admin = make_certificate(
            self.certificates / "admin", "admin", signer=clients, group="system:masters"
        )
        self.running: list[subprocess.Popen[str]] = []

    def start(self, *flags: str, **environment: str) -> None:
        """Starts both programs, and waits until each is ready."""
        self.start_etcd(**environment)
        self.start_apiserver(*flags, **environment)

    def start_etcd(self, **environment: str) -> None:
        url = f"http://127.0.0.1:{self.etcd_port}"
        self._run(
            "etcd",
            f"--data-dir={self.folder / 'data'}",
            f"--listen-client-urls={url}",
            f"--advertise-client-urls={url}",
            "--listen-peer-urls=http://127.0.0.1:0",
            "--unsafe-no-fsync=true",
            **environment,
        )
        self._wait_ready(f"{url}/health")

    def start_apiserver(self, *flags: str, **environment: str) -> None:
        self.run_apiserver(*flags, **environment)
        self._wait_ready(f"https://localhost:{self.port}/healthz")

    def run_apiserver(self, *flags: str, **environment: str) -> subprocess.Popen[str]:
        files = self.certificates
        return self._run(
            "kube-apiserver",
            "--allow-privileged=true",
            "--authorization-mode=RBAC",
            "--bind-address=127.0.0.1",
            f"--cert-dir={files}",
            f"--client-ca-file={files}/client-cert-auth-ca.crt",
            "--disable-admission-plugins=ServiceAccount",
            f"--etcd-servers=http://127.0.0.1:{self.etcd_port}",
            f"--secure-port={self.port}",
            f"--service-account-issuer=https://127.0.0.1:{self.port}/",
            f"--service-account-key-file={files}/sa-signer.crt",
            f"--service-account-signing-key-file={files}/sa-signer.key",
            "--service-cluster-ip-range=10.0.0.0/24",
            *flags,
            **environment,
        )

    def _run(self, name: str, *arguments: str, **environment: str) -> subprocess.Popen[str]:
        process = subprocess.Popen(
            [self.assets / name, *arguments],
            env={**os.environ, "TMPDIR": str(self.temporary), **environment},
            stderr=subprocess.PIPE,
            text=True,
            process_group=0,
        )
        self.running.append(process)
        return process

    def _wait_ready(self, url: str) -> None:
        until(lambda: self._is_ready(url), url, TIMEOUT)

    def _is_ready(self, url: str) -> bool:
        process = self.running[-1]
        if process.poll() is not None:
            assert process.stderr is not None
            raise AssertionError(process.stderr.read())
        try:
            with self._open(url, admin=False) as response:
                return bool(response.status == 200)
        except (OSError, urllib.error.URLError):
            return False

    def _open(self, url: str, *, admin: bool, **options: Any) -> Any:
        context = None
        if url.startswith("https"):
            context = ssl.create_default_context(cafile=self.certificates / "serving-ca.crt")
            context.verify_flags &= ~ssl.VERIFY_X509_STRICT  # Python 3.13's default, not Go's
            if admin:
                context.load_cert_chain(
                    self.admin.with_suffix(".crt"), self.admin.with_suffix(".key")
                )
        return urllib.request.urlopen(
            urllib.request.Request(url, **options), context=context, timeout=5
        )

    def ask(self, path: str, method: str = "GET", body: object = None) -> Any:
        """Sends a request as a member of system:masters, and returns the answer's JSON."""
        data = None if body is None else json.dumps(body).encode()
        headers = {"Content-Type": "application/json"}
        url = f"https://localhost:{self.port}{path}"
        with self._open(url, admin=True, method=method, data=data, headers=headers) as response:
            return json.load(response)

    def stop(self) -> float:
        """Stops both, the API server first, and returns how many seconds that took."""
        clock = RealClock()
        begin = clock.monotonic()
        while self.running:
            process = self.running.pop()
            process.terminate()
            process.wait(TIMEOUT)
            assert process.stderr is not None
            process.stderr.close()
        return clock.monotonic() - begin


if __name__ == "__main__":
    suite = Suite(Path(sys.argv[1]))
    suite.start()
    sys.stdout.write(f"{suite.temporary}\n")
    sys.stdout.flush()
    suite.running[-1].wait()
