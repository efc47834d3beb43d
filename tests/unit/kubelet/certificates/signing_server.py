"""An API server of which only signing requests are answered, in memory."""

from __future__ import annotations

import base64
import json
from collections.abc import Callable
from datetime import datetime, timedelta
from typing import Any

from cryptography import x509
from cryptography.hazmat.primitives import hashes, serialization
from cryptography.hazmat.primitives.asymmetric import ec
from cryptography.x509.oid import NameOID

from kcm import errors
from kcm.kubelet.certificates.manager import PATH

BACKDATE = timedelta(minutes=5)  # as the signers of kube-controller-manager do


class SigningServer:
    """Signs what is requested, or answers with `status`. `fails` are errors of next requests."""

    def __init__(self, now: Callable[[], datetime], life: timedelta = timedelta(days=1)) -> None:
        self._now = now
        self.life = life
        self.status: dict[str, Any] | None = None
        self.fails: list[Exception] = []
        self.requests: dict[str, dict[str, Any]] = {}
        self._key = ec.generate_private_key(ec.SECP256R1())

    def request(self, method: str, path: str, *, body: Any = None) -> bytes:
        if self.fails:
            raise self.fails.pop(0)
        if method == "POST":
            assert path == PATH
            meta = body["metadata"]
            name = meta.get("name") or f"{meta['generateName']}{len(self.requests)}"
            if name in self.requests:
                raise errors.AlreadyExists.of("certificatesigningrequests", name)
            self.requests[name] = body | {"metadata": {"name": name}}
            return json.dumps(self.requests[name]).encode()
        found = self.requests[path.rpartition("/")[2]]
        status = {"certificate": self.sign(found)} if self.status is None else self.status
        return json.dumps(found | {"status": status}).encode()

    def sign(self, request: dict[str, Any]) -> str:
        asked = x509.load_pem_x509_csr(base64.b64decode(request["spec"]["request"]))
        issuer = x509.Name([x509.NameAttribute(NameOID.COMMON_NAME, "ca")])
        builder = (
            x509.CertificateBuilder()
            .subject_name(asked.subject)
            .issuer_name(issuer)
            .public_key(asked.public_key())
            .serial_number(x509.random_serial_number())
            .not_valid_before(self._now() - BACKDATE)
            .not_valid_after(self._now() + self.life)
        )
        for extension in asked.extensions:
            builder = builder.add_extension(extension.value, critical=extension.critical)
        signed = builder.sign(self._key, hashes.SHA256())
        return base64.b64encode(signed.public_bytes(serialization.Encoding.PEM)).decode()
