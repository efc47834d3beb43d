"""Builds the files of configMap, secret, downwardAPI and projected volumes, as values.

Source: MakePayload in pkg/volume/{configmap,secret}/, CollectData in pkg/volume/downwardapi/ and
collectData in pkg/volume/projected/, Kubernetes 1.33. Departure: clusterTrustBundle is not
supported.
"""

from __future__ import annotations

import base64
from collections.abc import Mapping
from dataclasses import dataclass, field, replace

from kcm.api.core_v1 import Pod
from kcm.api.core_v1.security import PodSecurityContext
from kcm.api.core_v1.volume_sources import (
    ConfigMapVolumeSource,
    DownwardAPIVolumeFile,
    DownwardAPIVolumeSource,
    SecretVolumeSource,
)
from kcm.api.core_v1.volumes import (
    ConfigMapProjection,
    DownwardAPIProjection,
    ProjectedVolumeSource,
    SecretProjection,
    ServiceAccountTokenProjection,
    Volume,
    VolumeProjection,
)
from kcm.apimachinery.base import Model
from kcm.errors import ContainerConfigError
from kcm.helpers.pods import list_containers
from kcm.kubelet.environment.variables import Lookups, PodLocation, field_value, resource_value

DEFAULT_MODE = 0o644
_TOKEN_SECONDS = 3600
_GROUP_READ = 0o440


@dataclass(frozen=True)
class File:
    """A file's content and permission bits, and its owner and group if not the kubelet's."""

    data: bytes
    mode: int = 0o644
    owner: int | None = field(default=None, compare=False)
    group: int | None = field(default=None, compare=False)


Payload = Mapping[str, File]
"""The files of a volume, by their paths in it."""

Files = dict[str, File]

ConfigMapKeys = ConfigMapVolumeSource | ConfigMapProjection
SecretKeys = SecretVolumeSource | SecretProjection
DownwardFiles = DownwardAPIVolumeSource | DownwardAPIProjection


class Payloads:
    """Builds the files of one pod's volumes, by their paths.

    `mode` is the default mode of the projected volume that a source is part of, if it is. Methods
    raise ContainerConfigError for a missing object or key that is not optional.
    """

    def __init__(self, pod: Pod, lookups: Lookups, location: PodLocation) -> None:
        self._pod = pod
        self._namespace = pod.metadata.namespace or ""
        self._lookups = lookups
        self._location = location

    def build(self, volume: Volume) -> Files | None:
        """Returns the files of a volume that the kubelet fills, None for one of another kind."""
        if volume.config_map is not None:
            return self.config_map(volume.config_map)
        if volume.secret is not None:
            return self.secret(volume.secret)
        if volume.downward_api is not None:
            return self.downward_api(volume.downward_api)
        return self.projected(volume.projected) if volume.projected is not None else None

    def config_map(self, source: ConfigMapKeys, mode: int | None = None) -> Files:
        name = source.name or ""
        config_map = self._lookups.config_map(self._namespace, name)
        if config_map is None and not source.optional:
            raise ContainerConfigError(f'configmap "{name}" not found')
        values = {
            key: text.encode() for key, text in ((config_map and config_map.data) or {}).items()
        }
        binary = (config_map and config_map.binary_data) or {}
        values.update({key: base64.b64decode(text) for key, text in binary.items()})
        return _select_keys(values, source, _mode(source, mode), "config")

    def secret(self, source: SecretKeys, mode: int | None = None) -> Files:
        named = source.secret_name if isinstance(source, SecretVolumeSource) else source.name
        name = named or ""
        secret = self._lookups.secret(self._namespace, name)
        if secret is None and not source.optional:
            raise ContainerConfigError(f'secret "{name}" not found')
        data = (secret and secret.data) or {}
        values = {key: base64.b64decode(text) for key, text in data.items()}
        return _select_keys(values, source, _mode(source, mode), "secret")

    def downward_api(self, source: DownwardFiles, mode: int | None = None) -> Files:
        default = _mode(source, mode)
        files: Files = {}
        for item in source.items or ():
            bits = default if item.mode is None else item.mode
            files[item.path] = File(self._downward(item).encode(), bits)
        return files

    def _downward(self, item: DownwardAPIVolumeFile) -> str:
        if item.field_ref is not None:
            return field_value(item.field_ref.field_path, self._pod, self._location)
        if item.resource_field_ref is not None:
            return resource_value(item.resource_field_ref, self._pod, None, self._location)
        raise ContainerConfigError("an item of a downwardAPI volume names no field")

    def projected(self, source: ProjectedVolumeSource) -> Files:
        """Returns the files of all sources. A later source replaces files of an earlier one."""
        mode = _mode(source, None)
        files: Files = {}
        for part in source.sources:
            files.update(self._part(part, mode))
        return files

    def _part(self, part: VolumeProjection, mode: int) -> Files:
        if part.config_map is not None:
            return self.config_map(part.config_map, mode)
        if part.secret is not None:
            return self.secret(part.secret, mode)
        if part.downward_api is not None:
            return self.downward_api(part.downward_api, mode)
        if part.service_account_token is not None:
            return self._request_token(part.service_account_token, mode)
        raise ContainerConfigError("a projected volume cannot have a clusterTrustBundle here")

    def _request_token(self, source: ServiceAccountTokenProjection, mode: int) -> Files:
        """Returns the file with a token. If all containers have one user, it is that user's
        alone.
        """
        seconds = source.expiration_seconds or _TOKEN_SECONDS
        token = self._lookups.service_account_token(self._pod, source.audience or "", seconds)
        owner = only_user_of(self._pod)
        return {source.path: File(token.encode(), mode if owner is None else 0o600, owner)}


def _mode(source: Model, given: int | None) -> int:
    """Returns `given`, which is a projected volume's mode, or else the source's default mode."""
    own: int | None = getattr(source, "default_mode", None)
    if given is not None:
        return given
    return DEFAULT_MODE if own is None else own


def _select_keys(
    values: Mapping[str, bytes], source: ConfigMapKeys | SecretKeys, mode: int, what: str
) -> Files:
    """Returns the files of all keys, or of those that `items` selects.

    Raises ContainerConfigError if one of these keys is missing and not optional. `what` is the kind
    of object in that message.
    """
    if not source.items:
        return {key: File(data, mode) for key, data in values.items()}
    files: Files = {}
    for item in source.items:
        key = item.key
        if key in values:
            files[item.path] = File(values[key], mode if item.mode is None else item.mode)
        elif not source.optional:
            raise ContainerConfigError(f"references non-existent {what} key: {key}")
    return files


def only_user_of(pod: Pod) -> int | None:
    """Returns the user that the spec sets for every container of the pod.

    Returns None if it sets none for some container, or different ones. (Upstream's FsUserFrom.)
    """
    of_pod = (pod.spec.security_context or PodSecurityContext()).run_as_user
    users: set[int | None] = set()
    for container in list_containers(pod.spec):
        own = container.security_context.run_as_user if container.security_context else None
        users.add(of_pod if own is None else own)
    return users.pop() if len(users) == 1 else None


def find_group(pod: Pod) -> int | None:
    """Returns the fsGroup of a pod, None without one."""
    context = pod.spec.security_context
    return context.fs_group if context is not None else None


def give_files(payload: Payload, group: int | None) -> Mapping[str, File]:
    """Returns the files of a volume that is written by the kubelet, readable for the group."""
    if group is None:
        return payload
    return {
        path: replace(file, mode=file.mode | _GROUP_READ, group=group)
        for path, file in payload.items()
    }
