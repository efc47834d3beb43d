"""The credentials with which a pod's images are pulled: its imagePullSecrets.

Source: pkg/credentialprovider (keyring.go, secrets/secrets.go, config.go), Kubernetes 1.36.
Departures: there are no credential provider plugins, and no credentials of the node's own; a glob
in a registry's name matches within one label, as upstream, but not in its port.
"""

from __future__ import annotations

import base64
import json
from collections.abc import Iterable, Iterator, Mapping
from fnmatch import fnmatchcase
from typing import Any

from kcm import errors
from kcm.api.core_v1 import Pod
from kcm.kubelet.environment.variables import Lookups
from kcm.kubelet.images.store import Credentials

_DOCKER_HUB = "index.docker.io"
_KEYS = {
    "kubernetes.io/dockerconfigjson": ".dockerconfigjson",
    "kubernetes.io/dockercfg": ".dockercfg",
}


def find_credentials(pod: Pod, image: str, lookups: Lookups) -> list[Credentials]:
    """Returns the credentials for an image in the pod's Secrets, the most specific first.

    Secrets that are missing, unreadable or not available now are passed over, as upstream.
    """
    registry = name_registry(image)
    matching: list[tuple[int, Credentials]] = []
    for name, entry in _list_entries(pod, lookups):
        if match_registry(name, registry):
            matching.append((len(_strip(name)), _convert(entry)))
    return [credentials for _, credentials in sorted(matching, key=lambda pair: -pair[0])]


def name_registry(image: str) -> str:
    """Returns registry and repository of an image, like `index.docker.io/library/busybox`."""
    name = image.partition("@")[0]
    first, slash, _ = name.partition("/")
    if not slash or not ("." in first or ":" in first or first == "localhost"):
        return f"{_DOCKER_HUB}/{name if slash else f'library/{name}'}"
    return _DOCKER_HUB + name.removeprefix("docker.io") if first == "docker.io" else name


def _list_entries(pod: Pod, lookups: Lookups) -> Iterator[tuple[str, Mapping[str, Any]]]:
    for reference in pod.spec.image_pull_secrets or ():
        try:
            secret = lookups.secret(pod.namespace, reference.name or "")
        except errors.Temporary:
            continue
        key = _KEYS.get(secret.type or "") if secret is not None else None
        if secret is None or key is None:
            continue
        try:
            config = json.loads(base64.b64decode((secret.data or {})[key]))
            entries = config["auths"] if key == ".dockerconfigjson" else config
            pairs: Iterable[tuple[str, Any]] = entries.items()
        except (KeyError, ValueError, TypeError, AttributeError, RecursionError):
            continue
        yield from ((name, entry) for name, entry in pairs if isinstance(entry, dict))


def _strip(name: str) -> str:
    """Returns a registry's name without scheme and version of the API."""
    bare = name.removeprefix("https://").removeprefix("http://").rstrip("/")
    return bare.removesuffix("/v1").removesuffix("/v2")


def match_registry(pattern: str, image: str) -> bool:
    """Reports whether a registry's name, and perhaps the beginning of a path, is the image's.

    `image` is what `name_registry` returns.
    """
    pattern = _strip(pattern)
    host, _, path = pattern.partition("/")
    wanted_host, _, wanted_path = image.partition("/")
    labels, wanted = host.split("."), wanted_host.split(".")
    if len(labels) != len(wanted) or not wanted_path.startswith(path):
        return False
    return all(fnmatchcase(label, glob) for glob, label in zip(labels, wanted, strict=True))


def _convert(entry: Mapping[str, Any]) -> Credentials:
    username, password = str(entry.get("username") or ""), str(entry.get("password") or "")
    if auth := entry.get("auth"):
        try:
            both = base64.b64decode(str(auth)).decode()
            username, _, password = both.partition(":")
        except ValueError:
            pass  # what is in the other two fields is used
    return Credentials(username, password, str(entry.get("identitytoken") or ""))
