"""Measures certificates of `kcm up`, from signing requests over the REST API."""

from __future__ import annotations

import base64
import json
import time
from collections.abc import Iterator
from datetime import UTC, datetime, timedelta
from pathlib import Path

from cryptography import x509
from cryptography.hazmat.primitives import hashes, serialization
from cryptography.hazmat.primitives.asymmetric import ec
from cryptography.x509.oid import NameOID

from bench.harness import Bench, progress
from bench.rest.system import RestSystem, rest_system
from bench.rest.watch import Watch
from bench.table import Row, Sample
from kcm.apimachinery.certificates import parse_request
from kcm.helpers.authority import load_authority

REQUESTS = "/apis/certificates.k8s.io/v1/certificatesigningrequests"
_SIGNER, _USAGES = "kubernetes.io/kube-apiserver-client", ["client auth"]


def rows(bench: Bench) -> Iterator[Row]:
    """Measures certificates, from the approval of requests until all are issued."""
    count = bench.sizes.certificates
    progress(f"rest: {count} certificates approved and signed")
    pem = _build_request()
    ours = []
    with rest_system(bench) as system, Watch(system.servers.api, REQUESTS) as requests:
        for number in range(bench.sizes.rest_rounds):
            ours.append(count / _certify(system, requests, number, count, pem))
    raw = [count / _seconds_of_issuing(bench.folder, pem, count)]
    baseline = Sample.of(raw)
    yield Row(
        name="rest.certificates",
        what=f"{count} signing requests created, approved and signed",
        unit="/s",
        measured=Sample.of(ours),
        baseline=baseline,
        baseline_what="/s, signing alone",
        bound=0.01 * baseline.median,
        target="0.01 of signing alone",
        higher_is_better=True,
    )


def _certify(system: RestSystem, requests: Watch, number: int, count: int, pem: bytes) -> float:
    """Creates and approves requests; returns the seconds until all have a certificate."""
    api, names = system.servers.api, [f"r{number}-{n}" for n in range(count)]
    spec = {
        "request": base64.b64encode(pem).decode(),
        "signerName": _SIGNER,
        "usages": _USAGES,
    }
    creates = [
        api.request("POST", REQUESTS, json.dumps({"metadata": {"name": n}, "spec": spec}).encode())
        for n in names
    ]
    approval = {"status": {"conditions": [{"type": "Approved", "status": "True"}]}}
    patch = json.dumps(approval).encode()
    kind = "application/merge-patch+json"
    approvals = [api.request("PATCH", f"{REQUESTS}/{n}/approval", patch, kind) for n in names]
    started = time.monotonic()
    system.client.ask_all(creates)
    system.client.ask_all(approvals)

    def are_issued(watch: Watch) -> bool:
        return all(watch.status_of(name).get("certificate") for name in names)

    return requests.wait(are_issued, f"{count} certificates") - started


def _build_request() -> bytes:
    name = x509.Name([x509.NameAttribute(NameOID.COMMON_NAME, "bench")])
    builder = x509.CertificateSigningRequestBuilder().subject_name(name)
    signed = builder.sign(ec.generate_private_key(ec.SECP256R1()), hashes.SHA256())
    return signed.public_bytes(serialization.Encoding.PEM)


def _seconds_of_issuing(folder: Path, pem: bytes, count: int) -> float:
    authority = load_authority(str(folder / "ca.crt"), str(folder / "ca.key"))
    request, now = parse_request(base64.b64encode(pem).decode()), datetime.now(UTC)
    started = time.perf_counter()
    for _ in range(count):
        authority.sign(request, _USAGES, timedelta(days=1), now)
    return time.perf_counter() - started
