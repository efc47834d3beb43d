"""The files of configMap, secret, downwardAPI and projected volumes; pure given lookups.

Source: MakePayload in pkg/volume/{configmap,secret}/, CollectData in
pkg/volume/downwardapi/, collectData in pkg/volume/projected/, Kubernetes 1.33.
Departure: clusterTrustBundle is not known here.
"""

from __future__ import annotations

import base64
from collections.abc import Mapping
from typing import Any

from kcm.api.base import JsonObject
from kcm.api.core_v1 import Pod
from kcm.errors import ContainerConfigError
from kcm.kubelet.environment.fields import field_value, resource_value
from kcm.kubelet.environment.lookups import Lookups, Place
from kcm.kubelet.volumes.atomic import File

DEFAULT_MODE = 0o644
_TOKEN_SECONDS = 3600

Files = dict[str, File]


class Payloads:
    """Makes the files of one pod's volumes."""

    def __init__(self, pod: Pod, lookups: Lookups, place: Place) -> None:
        self._pod = pod
        self._namespace = pod.metadata.namespace or ""
        self._lookups = lookups
        self._place = place

    def config_map(self, source: JsonObject, mode: int | None = None) -> Files:
        name = str(source.get("name") or "")
        found = self._lookups.config_map(self._namespace, name)
        if found is None and not source.get("optional"):
            raise ContainerConfigError(f'configmap "{name}" not found')
        values = {key: text.encode() for key, text in ((found and found.data) or {}).items()}
        binary = (found and found.binary_data) or {}
        values.update({key: base64.b64decode(text) for key, text in binary.items()})
        return _chosen(values, source, _mode(source, mode), "config")

    def secret(self, source: JsonObject, mode: int | None = None) -> Files:
        name = str(source.get("secretName") or source.get("name") or "")
        found = self._lookups.secret(self._namespace, name)
        if found is None and not source.get("optional"):
            raise ContainerConfigError(f'secret "{name}" not found')
        data = (found and found.data) or {}
        values = {key: base64.b64decode(text) for key, text in data.items()}
        return _chosen(values, source, _mode(source, mode), "secret")

    def downward_api(self, source: JsonObject, mode: int | None = None) -> Files:
        default = _mode(source, mode)
        found: Files = {}
        for item in source.get("items") or []:
            bits = default if item.get("mode") is None else int(item["mode"])
            found[str(item.get("path", ""))] = File(self._downward(item).encode(), bits)
        return found

    def _downward(self, item: JsonObject) -> str:
        if ref := item.get("fieldRef"):
            return field_value(str(ref.get("fieldPath", "")), self._pod, self._place)
        if ref := item.get("resourceFieldRef"):
            return resource_value(ref, self._pod, None, self._place)
        raise ContainerConfigError("an item of a downwardAPI volume names no field")

    def projected(self, source: JsonObject) -> Files:
        """All sources' files; of two with the same path, the later one wins."""
        mode = _mode(source, None)
        found: Files = {}
        for part in source.get("sources") or []:
            found.update(self._part(part, mode))
        return found

    def _part(self, part: Mapping[str, Any], mode: int) -> Files:
        if (config_map := part.get("configMap")) is not None:
            return self.config_map(config_map, mode)
        if (secret := part.get("secret")) is not None:
            return self.secret(secret, mode)
        if (downward := part.get("downwardAPI")) is not None:
            return self.downward_api(downward, mode)
        if (token := part.get("serviceAccountToken")) is not None:
            return self._token(token, mode)
        raise ContainerConfigError(f"a projected volume cannot have {', '.join(part)} here")

    def _token(self, source: JsonObject, mode: int) -> Files:
        token = self._lookups.service_account_token(
            self._namespace,
            self._pod.spec.service_account_name or "default",
            str(source.get("audience") or ""),
            int(source.get("expirationSeconds") or _TOKEN_SECONDS),
        )
        if token is None:
            raise ContainerConfigError("this node has no service account tokens to project")
        return {str(source.get("path", "")): File(token.encode(), mode)}


def _mode(source: JsonObject, given: int | None) -> int:
    """The source's own default, or that of the projected volume it is in."""
    own = source.get("defaultMode")
    if given is not None:
        return given
    return DEFAULT_MODE if own is None else int(own)


def _chosen(values: Mapping[str, bytes], source: JsonObject, mode: int, what: str) -> Files:
    """All keys, or those that `items` names."""
    if not source.get("items"):
        return {key: File(data, mode) for key, data in values.items()}
    found: Files = {}
    for item in source["items"]:
        key, bits = str(item.get("key", "")), item.get("mode")
        if key in values:
            path = str(item.get("path", ""))
            found[path] = File(values[key], mode if bits is None else int(bits))
        elif not source.get("optional"):
            raise ContainerConfigError(f"references non-existent {what} key: {key}")
    return found
