"""The commands with which another machine joins."""

from __future__ import annotations

import base64
from pathlib import Path

import yaml

from kcm import errors

_FILE, _CLIENT_CA = "join.kubeconfig", "client-ca.crt"


def join_command(kubeconfig: Path, token: str, server: str = "", *, client_ca: Path) -> str:
    """Returns the commands that another machine types.

    They write a kubeconfig that has the token and the certificate of the API server, by which the
    machine knows the server: whoever has the token can be deceived by nobody. `server` takes the
    place of the URL in the kubeconfig, unless it is "". If there is a file `client_ca`, the
    commands write it, too: by its certificates the machine knows the API server as a client.
    Raises ConfigurationError.
    """
    text = bootstrap_kubeconfig(kubeconfig, token, server)
    lines = f"(umask 077 && cat > {_FILE}) <<'END'\n{text}END\n"
    command = f"kcm kubelet --bootstrap-kubeconfig {_FILE}"
    if client_ca.is_file():
        lines += f"cat > {_CLIENT_CA} <<'END'\n{client_ca.read_text('ascii').strip()}\nEND\n"
        command += f" --client-ca-file {_CLIENT_CA}"
    return lines + command


def bootstrap_kubeconfig(kubeconfig: Path, token: str, server: str = "") -> str:
    """Returns a kubeconfig with the cluster of another one, and with the token.

    Raises ConfigurationError.
    """
    try:
        config = yaml.safe_load(kubeconfig.read_text("utf-8"))
        current = config["current-context"]
        context = next(c for c in config["contexts"] if c["name"] == current)["context"]
        cluster = next(c for c in config["clusters"] if c["name"] == context["cluster"])["cluster"]
        url = server or cluster["server"]
        authority = cluster.get("certificate-authority-data")
        if not authority and cluster.get("certificate-authority"):
            path = kubeconfig.parent / cluster["certificate-authority"]
            authority = base64.b64encode(path.read_bytes()).decode()
    except (OSError, yaml.YAMLError, KeyError, TypeError, StopIteration) as error:
        raise errors.ConfigurationError(
            f"{kubeconfig} names no API server ({error!r}): --kubeconfig names another file"
        ) from error
    if not authority:
        raise errors.ConfigurationError(
            f"{kubeconfig} has no certificate of the API server, so the token would go to "
            "whoever answers: use an API server with TLS"
        )
    joined = {"server": url, "certificate-authority-data": authority}
    return yaml.safe_dump(
        {
            "apiVersion": "v1",
            "kind": "Config",
            "clusters": [{"name": "kcm", "cluster": joined}],
            "users": [{"name": "kubelet-bootstrap", "user": {"token": token}}],
            "contexts": [
                {"name": "bootstrap", "context": {"cluster": "kcm", "user": "kubelet-bootstrap"}}
            ],
            "current-context": "bootstrap",
        },
        sort_keys=False,
    )
