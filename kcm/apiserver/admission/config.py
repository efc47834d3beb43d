"""Reads the file of --admission-control-config-file: how the API server identifies itself to
webhooks.

Source: staging/src/k8s.io/apiserver/pkg/admission/config.go and
plugin/webhook/config/kubeconfig.go, Kubernetes 1.33. Departure: other plugins have no
configuration here, so that one for them is an error.
"""

from __future__ import annotations

from collections.abc import Mapping
from pathlib import Path
from typing import Any

import yaml

from kcm.apiserver.admission.plugins import WebhookCredentials
from kcm.apiserver.egress.credentials import BackendCredentials, load_credentials
from kcm.errors import ConfigurationError

_VERSIONS = ("apiserver.config.k8s.io/v1", "apiserver.k8s.io/v1alpha1")
_MUTATING, _VALIDATING = "MutatingAdmissionWebhook", "ValidatingAdmissionWebhook"


def load_admission_config(path: Path) -> WebhookCredentials:
    """Returns the credentials for webhooks. Raises ConfigurationError."""
    document = _read(path, "AdmissionConfiguration")
    credentials: dict[str, BackendCredentials] = {}
    for plugin in document.get("plugins") or ():
        name = plugin.get("name") if isinstance(plugin, dict) else None
        if name not in (_MUTATING, _VALIDATING):
            plugins = f"{_MUTATING} and {_VALIDATING}"
            raise ConfigurationError(f"{path}: plugin {name!r} is not known: known are {plugins}")
        file = _kubeconfig_of(plugin, path)
        if file is not None:
            credentials[name] = load_credentials(file)
    nobody = BackendCredentials()
    return WebhookCredentials(
        credentials.get(_MUTATING, nobody), credentials.get(_VALIDATING, nobody)
    )


def _kubeconfig_of(plugin: Mapping[str, Any], path: Path) -> Path | None:
    """Returns the kubeconfig that a plugin's configuration names. Paths are relative to the file
    that names them.
    """
    configuration, source = plugin.get("configuration"), path
    if configuration is None and plugin.get("path"):
        source = path.parent / str(plugin["path"])
        configuration = _read(source, "WebhookAdmission", "WebhookAdmissionConfiguration")
    if configuration is None:
        return None
    if not isinstance(configuration, dict) or not configuration.get("kubeConfigFile"):
        raise ConfigurationError(f"{source}: kubeConfigFile of {plugin['name']} is missing")
    return source.parent / str(configuration["kubeConfigFile"])


def _read(path: Path, *kinds: str) -> Mapping[str, Any]:
    try:
        document = yaml.safe_load(path.read_text("utf-8"))
    except (OSError, UnicodeError, yaml.YAMLError) as error:
        raise ConfigurationError(f"{path} cannot be read: {error}") from None
    if not isinstance(document, dict) or document.get("kind") not in kinds:
        raise ConfigurationError(f"{path} is not of kind {' or '.join(kinds)}")
    version = document.get("apiVersion")
    if version not in _VERSIONS:
        raise ConfigurationError(f"{path}: apiVersion {version!r} is not {_VERSIONS[0]}")
    return document
