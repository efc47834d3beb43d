"""Builds what rotates the certificates of a kubelet that works for an API server."""

from __future__ import annotations

import random
import threading
from collections.abc import Callable

from kcm.clock import Clock
from kcm.kubelet.assembly.kubelet import Kubelet
from kcm.kubelet.assembly.records import Run
from kcm.kubelet.certificates.bootstrap import Joining, client_template, serving_template
from kcm.kubelet.certificates.manager import CertificateManager, Requester, Sender
from kcm.kubelet.certificates.metrics import ClientMetrics, ServerMetrics
from kcm.kubelet.certificates.store import CLIENT, SERVER, CertificateStore


def build_rotations(
    joining: Joining,
    kubelet: Kubelet,
    *,
    sender: Sender,
    use_client: Callable[[CertificateStore], None],
    stop: threading.Event,
    clock: Clock,
) -> list[Run]:
    """Returns what rotates the client and the serving certificate, as the options say.

    `use_client` is called with the store after each new client certificate.
    """
    options, registry = kubelet.options, kubelet.records.registry
    requester = Requester(sender, clock, stop)
    runs: list[Run] = []
    client = CertificateStore(joining.cert_dir, CLIENT)
    if joining.rotate_certificates and client.read_current() is not None:
        template = client_template(options.node_name)
        runs.append(
            CertificateManager(
                store=client,
                template=lambda: template,
                requester=requester,
                rotated=lambda: use_client(client),
                metrics=ClientMetrics(registry, clock),
                clock=clock,
                random=random.Random(),
            ).run
        )
    if joining.rotate_server_certificates:
        server = CertificateStore(joining.cert_dir, SERVER)
        serving = serving_template(options.node_name, (options.node_name,), (options.node_ip,))
        runs.append(
            CertificateManager(
                store=server,
                template=lambda: serving,
                requester=requester,
                rotated=lambda: kubelet.server.use_certificate(server.current_path),
                metrics=ServerMetrics(registry, clock),
                clock=clock,
                random=random.Random(),
            ).run
        )
    return runs
