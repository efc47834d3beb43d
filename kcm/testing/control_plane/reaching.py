"""How a test reads and writes the objects of a control plane, and whom it lets do so."""

from __future__ import annotations

import base64
import itertools
from abc import ABC, abstractmethod
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any
from urllib.parse import urlsplit

from kcm import errors
from kcm.apiserver import credentials
from kcm.apiserver.credentials import Certificate
from kcm.testing.control_plane.manifests import Json, read_manifests
from kcm.testing.control_plane.objects import Manifest, Objects, PatchType

_CONFIGURATIONS = frozenset({"MutatingWebhookConfiguration", "ValidatingWebhookConfiguration"})
_TOKEN_LASTS = 10 * 365 * 86_400  # seconds; a test may move the clock by years
_NUMBERS = itertools.count(1)


class Reaching(ABC):
    """The part of a ControlPlane that goes over the REST API, as an administrator."""

    url: str
    _looked_at: tuple[str, str] | None = None  # the object that was read last

    @property
    @abstractmethod
    def objects(self) -> Objects:
        """Reads and writes its objects over REST."""

    @property
    @abstractmethod
    def kubeconfig(self) -> Path:
        """The kubeconfig of its administrator, for any client."""

    @abstractmethod
    def _wait_level(self) -> None:
        """Waits until the API server goes by every write, such as a webhook's configuration."""

    def apply(self, manifest: Manifest, namespace: str | None = None) -> list[Json]:
        """Applies objects on the server, and returns them in their order.

        A manifest is a mapping, YAML text, the path of a file or folder, a model of a client
        library, or a sequence of these. Definitions are established when it returns. Raises
        ApiError, and ValueError for what is no manifest or names another namespace.
        """
        return self.objects.apply(manifest, namespace)

    def get(self, name: str, namespace: str = "default") -> Json:
        """Returns the object `kind/name`, like `deployment/web`. Raises ApiError."""
        self._looked_at = name, namespace
        return self.objects.get(name, namespace)

    def list(self, kind: str, namespace: str | None = "default", selector: str = "") -> list[Json]:
        """Returns the objects of a kind; with `namespace` None those of all. Raises ApiError."""
        return self.objects.list(kind, namespace, selector)

    def delete(self, name: str, namespace: str = "default") -> None:
        """Deletes the object `kind/name`. Raises ApiError."""
        self.objects.delete(name, namespace)

    def patch(
        self,
        name: str,
        change: Mapping[str, Any] | Sequence[Mapping[str, Any]],
        namespace: str = "default",
        *,
        subresource: str = "",
        patch_type: PatchType | None = None,
    ) -> Json:
        """Patches the object `kind/name`, and returns it: `subresource="status"` its status.

        A mapping is a merge patch unless `patch_type` says otherwise, a sequence a JSON patch.
        Raises ApiError and ValueError.
        """
        return self.objects.patch(
            name, change, namespace, subresource=subresource, patch_type=patch_type
        )

    def scale(self, name: str, replicas: int, namespace: str = "default") -> None:
        """Sets the replicas of the object `kind/name`, as `kubectl scale` does. Raises ApiError."""
        self.patch(name, {"spec": {"replicas": replicas}}, namespace, subresource="scale")

    def kubeconfig_for(
        self, *, user: str = "", groups: Sequence[str] = (), service_account: str = ""
    ) -> Path:
        """Returns a kubeconfig of somebody else, for tests of what roles allow.

        It has the certificate of a user in groups, or a token of a service account
        (`namespace/name`, or `name` in `default`). Raises ValueError, and ApiError if there is no
        such account.
        """
        if bool(user) == bool(service_account) or (groups and not user):
            raise ValueError(
                "say who it is: either user= with groups=, or service_account="
                if not isinstance(groups, str)
                else "groups are several names: write groups=[...]"
            )
        folder, number = self.kubeconfig.parent, next(_NUMBERS)
        known_by: str | Certificate
        if service_account:
            known_by = self.objects.create_token(service_account, _TOKEN_LASTS)
        else:
            authority = credentials.load_authority(folder)
            stem = f"user-{number}"
            known_by = credentials.ensure_user_certificate(folder, authority, stem, user, groups)
        path = folder / f"kubeconfig-{number}"
        credentials.write_kubeconfig(path, self.url, known_by, folder / "apiserver.crt")
        return path

    def webhook_certificate(self, host: str = "localhost") -> Certificate:
        """Returns the certificate and key with which a webhook is to serve on this machine.

        The files are `tls.crt` and `tls.key` in one folder. They are valid for the names of this
        machine's loopback interface and for `host`.
        """
        return credentials.certificate(self.kubeconfig.parent / "webhooks", (host,), "tls")

    def install_webhooks(self, manifest: Manifest, url: str) -> Certificate:
        """Points the API server to webhooks at `url`, where the test or an operator serves them.

        The manifest is as for `apply`. Of its webhook configurations, and of definitions with a
        conversion webhook, the Service is replaced by `url` with the Service's path, and the
        caBundle is that of `webhook_certificate`, which is returned. Other objects are left out.
        Raises ValueError and ApiError.
        """
        parts = urlsplit(url)
        if parts.scheme != "https" or not parts.hostname:
            raise ValueError(
                f"webhooks are called by HTTPS: write https://127.0.0.1:9443, not {url}"
            )
        certificate = self.webhook_certificate(parts.hostname)
        bundle = base64.b64encode(certificate.certificate.read_bytes()).decode()
        redirected = []
        for document in read_manifests(manifest):
            configs = _client_configs(document)
            for config in configs:
                path = (config.pop("service", None) or {}).get("path") or ""
                path = path or urlsplit(config.get("url") or "").path
                config |= {"url": f"{url.rstrip('/')}/{path.lstrip('/')}", "caBundle": bundle}
            redirected += [document] if configs else []
        if not redirected:
            raise ValueError("the manifest has no webhook configuration and no conversion webhook")
        self.apply(redirected)
        self._wait_level()
        return certificate

    def install_definitions(self, manifest: Manifest) -> None:
        """Applies the CustomResourceDefinitions of a manifest, which are established then.

        Other objects are left out. Raises ConfigurationError if there is none.
        """
        documents = [one for one in read_manifests(manifest) if is_definition(one)]
        if not documents:
            raise errors.ConfigurationError("crds= has no CustomResourceDefinition")
        self.apply(documents)


def is_definition(document: Json) -> bool:
    """Reports whether a manifest is a CustomResourceDefinition."""
    return document.get("kind") == "CustomResourceDefinition"


def _client_configs(document: Json) -> list[dict[str, Any]]:
    """Returns the parts of an object that say where its webhooks are."""
    if document.get("kind") in _CONFIGURATIONS:
        return [one.setdefault("clientConfig", {}) for one in document.get("webhooks") or ()]
    if is_definition(document):
        conversion = (document.get("spec") or {}).get("conversion") or {}
        if conversion.get("strategy") == "Webhook":
            return [conversion["webhook"].setdefault("clientConfig", {})]
    return []
