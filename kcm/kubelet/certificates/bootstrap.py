"""How a kubelet joins: it gets its first client certificate with a bootstrap kubeconfig.

Source: pkg/kubelet/certificate/bootstrap/bootstrap.go, Kubernetes 1.33.
"""

from __future__ import annotations

import threading
from collections.abc import Callable
from contextlib import suppress
from dataclasses import dataclass
from pathlib import Path

import structlog
import yaml
from cryptography.hazmat.primitives.asymmetric.ec import EllipticCurvePrivateKey
from cryptography.hazmat.primitives.serialization import load_pem_private_key

from kcm import errors
from kcm.api.certificates_v1 import API_SERVER_CLIENT_KUBELET, KUBELET_SERVING
from kcm.clock import Clock, RealClock
from kcm.kubelet.certificates.manager import (
    CLIENT_USAGES,
    SERVING_USAGES,
    RefusedRequest,
    Requester,
    Sender,
    Template,
    encode_key,
    name_for_key,
    new_key,
)
from kcm.kubelet.certificates.store import CLIENT, CertificateStore, write_private

log = structlog.get_logger("kcm.kubelet")

_RETRY = 2.0  # seconds between attempts while the API server is away


@dataclass(frozen=True, kw_only=True)
class Joining:
    """Where a kubelet's certificates are, and how it gets the first one.

    `bootstrap_kubeconfig` is None for a kubelet that has its kubeconfig.
    """

    kubeconfig: Path
    cert_dir: Path
    bootstrap_kubeconfig: Path | None = None
    rotate_certificates: bool = True
    rotate_server_certificates: bool = True


def client_template(node: str) -> Template:
    """Returns what a node's client certificate says."""
    return Template(API_SERVER_CLIENT_KUBELET, CLIENT_USAGES, f"system:node:{node}")


def serving_template(node: str, dns_names: tuple[str, ...], addresses: tuple[str, ...]) -> Template:
    """Returns what a node's serving certificate says."""
    return Template(
        KUBELET_SERVING,
        SERVING_USAGES,
        f"system:node:{node}",
        dns_names=dns_names,
        addresses=addresses,
    )


def join(
    joining: Joining,
    node: str,
    open_client: Callable[[Path], Sender],
    stop: threading.Event,
    clock: Clock | None = None,
) -> bool:
    """Makes sure that there is a kubeconfig with a valid client certificate.

    Waits for the certificate as long as the API server is away or nobody has decided. Returns
    False if `stop` was set first. Raises ConfigurationError and RefusedRequest.
    """
    clock = clock or RealClock()
    store = CertificateStore(joining.cert_dir, CLIENT)
    template = client_template(node)
    if joining.bootstrap_kubeconfig is None:
        return True
    current = store.read_current()
    valid = current is not None and current.not_after > clock.now()
    if valid and current is not None and current.common_name == template.common_name:
        if not joining.kubeconfig.is_file():
            write_kubeconfig(joining, store)
        return True
    key_file = joining.cert_dir / f"{CLIENT}.key.tmp"
    key = _load_or_make_key(key_file)
    requester = Requester(open_client(joining.bootstrap_kubeconfig), clock, stop)
    pem = _request(requester, template, key)
    if pem is None:
        return False
    store.write(pem, encode_key(key), clock.now())
    write_kubeconfig(joining, store)
    key_file.unlink(missing_ok=True)
    log.info("Joined", node=node, kubeconfig=str(joining.kubeconfig))
    return True


def _request(
    requester: Requester, template: Template, key: EllipticCurvePrivateKey
) -> bytes | None:
    """Returns the certificate, None if `stop` was set. Raises ConfigurationError."""
    while not requester.stop.is_set():
        try:
            return requester.request(template, key, name_for_key(key, template))
        except errors.Temporary as error:
            log.warning("Cannot join yet, trying again", error=str(error))
            requester.clock.wait(requester.stop, _RETRY)
        except RefusedRequest:
            if requester.stop.is_set():
                return None
            raise
        except errors.ApiError as error:
            raise errors.ConfigurationError(
                f"the API server refuses the bootstrap kubeconfig: {error.message}: make a new "
                "token with `kcm token create`"
            ) from error
    return None


def _load_or_make_key(path: Path) -> EllipticCurvePrivateKey:
    """Returns the key in a file, which is made if it is missing. Raises ConfigurationError."""
    try:
        path.parent.mkdir(mode=0o700, parents=True, exist_ok=True)
        with suppress(FileNotFoundError, ValueError, TypeError):
            kept = load_pem_private_key(path.read_bytes(), None)
            if isinstance(kept, EllipticCurvePrivateKey):
                return kept
        path.unlink(missing_ok=True)
        key = new_key()
        write_private(path, encode_key(key))
    except OSError as error:
        raise errors.ConfigurationError(f"--cert-dir: {path}: {error.strerror}") from error
    return key


def write_kubeconfig(joining: Joining, store: CertificateStore) -> None:
    """Writes the kubeconfig: the cluster of the bootstrap kubeconfig, and the certificate's link.

    Raises ConfigurationError.
    """
    assert joining.bootstrap_kubeconfig is not None
    try:
        config = yaml.safe_load(joining.bootstrap_kubeconfig.read_text("utf-8"))
        context = next(
            c["context"] for c in config["contexts"] if c["name"] == config["current-context"]
        )
        cluster = next(c for c in config["clusters"] if c["name"] == context["cluster"])["cluster"]
        authority = cluster.get("certificate-authority")
        if authority:
            parent = joining.bootstrap_kubeconfig.parent
            cluster = cluster | {"certificate-authority": str((parent / authority).absolute())}
        pem = str(store.current_path.absolute())
        user = {"client-certificate": pem, "client-key": pem}
        content = {
            "apiVersion": "v1",
            "kind": "Config",
            "clusters": [{"name": "default-cluster", "cluster": cluster}],
            "users": [{"name": "default-auth", "user": user}],
            "contexts": [
                {
                    "name": "default-context",
                    "context": {"cluster": "default-cluster", "user": "default-auth"},
                }
            ],
            "current-context": "default-context",
        }
        joining.kubeconfig.parent.mkdir(mode=0o700, parents=True, exist_ok=True)
        fresh = joining.kubeconfig.with_name(f".{joining.kubeconfig.name}.new")
        fresh.unlink(missing_ok=True)
        write_private(fresh, yaml.safe_dump(content, sort_keys=False).encode())
        fresh.replace(joining.kubeconfig)
    except (OSError, yaml.YAMLError, KeyError, TypeError, StopIteration) as error:
        raise errors.ConfigurationError(
            f"--bootstrap-kubeconfig {joining.bootstrap_kubeconfig}: {error!r}"
        ) from error
