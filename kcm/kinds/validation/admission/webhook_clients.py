"""Validation of where a webhook's server is.

Source: staging/src/k8s.io/apiserver/pkg/util/webhook/validation.go, Kubernetes 1.33.
"""

from __future__ import annotations

from urllib.parse import urlsplit

from kcm.api.admissionregistration_v1 import ServiceReference, WebhookClientConfig
from kcm.apimachinery import names
from kcm.apimachinery.field_errors import Faults, invalid, required

_FORM = "; desired format: https://host[/path]"
_MOST_PORT = 65535


def client_config(config: WebhookClientConfig, path: str) -> Faults:
    """Checks that there is one place, and that it is valid."""
    if (config.url is None) == (config.service is None):
        return [required(path, "exactly one of url or service is required")]
    if config.url is not None:
        return url(config.url, f"{path}.url")
    assert config.service is not None
    return service(config.service, f"{path}.service")


def url(text: str, path: str) -> Faults:
    try:
        parts = urlsplit(text)
        host = parts.hostname
        _ = parts.port  # raises ValueError
    except ValueError as error:
        return [required(path, f"url must be a valid URL: {error}{_FORM}")]
    faults: Faults = []
    if parts.scheme != "https":
        why = f"'https' is the only allowed URL scheme{_FORM}"
        faults.append(invalid(path, parts.scheme, why))
    if not host:
        faults.append(invalid(path, parts.netloc, f"host must be specified{_FORM}"))
    if "@" in parts.netloc:
        user = parts.netloc.rpartition("@")[0]
        faults.append(invalid(path, user, "user information is not permitted in the URL"))
    if parts.fragment:
        faults.append(invalid(path, parts.fragment, "fragments are not permitted in the URL"))
    if parts.query:
        faults.append(invalid(path, parts.query, "query parameters are not permitted in the URL"))
    return faults


def service(reference: ServiceReference, path: str) -> Faults:
    faults: Faults = []
    if not reference.name:
        faults.append(required(f"{path}.name"))
    if not reference.namespace:
        faults.append(required(f"{path}.namespace"))
    port = reference.port or 0
    if not 0 < port <= _MOST_PORT:
        why = "port is not valid: must be between 1 and 65535, inclusive"
        faults.append(invalid(f"{path}.port", port, why))
    return faults + _url_path(reference.path, f"{path}.path")


def _url_path(text: str | None, path: str) -> Faults:
    if text in (None, "", "/"):
        return []
    assert text is not None
    if text == "//":
        return [invalid(path, text, "segment[0] may not be empty")]
    faults: Faults = []
    if not text.startswith("/"):
        faults.append(invalid(path, text, "must start with a '/'"))
    for index, step in enumerate(text[1:].removesuffix("/").split("/")):
        if not step:
            faults.append(invalid(path, text, f"segment[{index}] may not be empty"))
            continue
        faults += [
            invalid(path, text, f"segment[{index}]: {fault}")
            for fault in names.subdomain_faults(step)
        ]
    return faults
