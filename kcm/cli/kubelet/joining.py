"""The flags of `kcm kubelet` about its kubeconfig and certificates, and what they make it do."""

from __future__ import annotations

import threading
from dataclasses import dataclass, replace
from datetime import UTC, datetime
from pathlib import Path
from typing import TYPE_CHECKING

from kcm import errors
from kcm.kubelet.options import KubeletOptions

if TYPE_CHECKING:
    from kcm.kubelet.certificates.bootstrap import Joining
    from kcm.kubelet.certificates.manager import Sender


@dataclass(frozen=True)
class CertificateFlags:
    """The values of the flags. `kubeconfig` is None for a kubelet that works on Redis."""

    kubeconfig: Path | None
    bootstrap_kubeconfig: Path | None
    cert_dir: Path
    rotate_certificates: bool
    rotate_server_certificates: bool

    def check(self) -> None:
        """Raises ConfigurationError for a file that is missing, and for flags that need another."""
        given = self.bootstrap_kubeconfig or self.kubeconfig
        if given is None and self.rotate_server_certificates:
            raise errors.ConfigurationError(
                "--rotate-server-certificates needs --kubeconfig or --bootstrap-kubeconfig: "
                "certificates are requested of an API server"
            )
        # A bootstrap kubeconfig may be removed once there is a kubeconfig.
        if given is not None and not given.is_file() and not _exists(self.kubeconfig):
            flag = "--kubeconfig" if self.bootstrap_kubeconfig is None else "--bootstrap-kubeconfig"
            raise errors.ConfigurationError(f"{flag}: there is no file {given}")

    def join(
        self, options: KubeletOptions, stop: threading.Event
    ) -> tuple[KubeletOptions, Joining | None] | None:
        """Joins the cluster if the flags say so, and returns the kubelet's options.

        With them it returns which certificates rotate, None for none. Returns None if `stop` was
        set before the kubelet has joined. Raises ConfigurationError and RefusedRequest.
        """
        if self.kubeconfig is None:
            return options, None
        # These need a library for certificates that other kubelets do not load.
        from kcm.kubelet.certificates.bootstrap import Joining, join  # noqa: PLC0415
        from kcm.kubelet.certificates.serving import serving_files  # noqa: PLC0415

        joining = Joining(
            kubeconfig=self.kubeconfig,
            cert_dir=self.cert_dir.absolute(),
            bootstrap_kubeconfig=self.bootstrap_kubeconfig,
            rotate_certificates=self.rotate_certificates,
            rotate_server_certificates=self.rotate_server_certificates,
        )
        if not join(joining, options.node_name, _open_client, stop):
            return None
        if self.rotate_server_certificates:
            files = serving_files(
                joining.cert_dir, options.node_name, options.node_ip, datetime.now(UTC)
            )
            options = replace(options, certificate=files)
        return options, joining


def _exists(path: Path | None) -> bool:
    return path is not None and path.is_file()


def _open_client(kubeconfig: Path) -> Sender:
    from kcm.store.remote.kubeconfig import load  # noqa: PLC0415 - their imports take long
    from kcm.store.remote.rest import RestClient  # noqa: PLC0415

    return RestClient(load(kubeconfig), "kubelet")
