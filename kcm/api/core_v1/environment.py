"""core/v1: the environment variables of a container and the sources of their values.

Source: staging/src/k8s.io/api/core/v1/types.go, Kubernetes 1.33.
"""

from __future__ import annotations

from typing import ClassVar

from kcm.apimachinery.base import Bool, Model
from kcm.apimachinery.quantity import Quantity


class ObjectFieldSelector(Model):
    """A field of the pod, such as `metadata.name`."""

    kubernetes_atomic: ClassVar[bool] = True

    api_version: str | None = None
    field_path: str = ""


class ResourceFieldSelector(Model):
    """A resource limit or request of a container, as a multiple of `divisor`."""

    kubernetes_atomic: ClassVar[bool] = True

    container_name: str | None = None
    resource: str = ""
    divisor: Quantity | None = None


class ConfigMapKeySelector(Model):
    """A key of a ConfigMap in the pod's namespace."""

    kubernetes_atomic: ClassVar[bool] = True

    name: str | None = None
    key: str = ""
    optional: Bool | None = None


class SecretKeySelector(Model):
    """A key of a Secret in the pod's namespace."""

    kubernetes_atomic: ClassVar[bool] = True

    name: str | None = None
    key: str = ""
    optional: Bool | None = None


class FileKeySelector(Model):
    """A key in a file of variables on a volume of the pod."""

    kubernetes_atomic: ClassVar[bool] = True

    volume_name: str = ""
    path: str = ""
    key: str = ""
    optional: Bool | None = None


class EnvVarSource(Model):
    """The source of a variable's value. Exactly one field is set."""

    field_ref: ObjectFieldSelector | None = None
    resource_field_ref: ResourceFieldSelector | None = None
    config_map_key_ref: ConfigMapKeySelector | None = None
    secret_key_ref: SecretKeySelector | None = None
    file_key_ref: FileKeySelector | None = None


class EnvVar(Model):
    """An environment variable of a container."""

    name: str = ""
    value: str | None = None
    value_from: EnvVarSource | None = None


class ConfigMapEnvSource(Model):
    """A ConfigMap whose keys become environment variables."""

    name: str | None = None
    optional: Bool | None = None


class SecretEnvSource(Model):
    """A Secret whose keys become environment variables."""

    name: str | None = None
    optional: Bool | None = None


class EnvFromSource(Model):
    """A ConfigMap or Secret whose keys become environment variables, with an optional prefix."""

    prefix: str | None = None
    config_map_ref: ConfigMapEnvSource | None = None
    secret_ref: SecretEnvSource | None = None
