"""core/v1: where the variables of a container come from.

Source: staging/src/k8s.io/api/core/v1/types.go, Kubernetes 1.33.
"""

from __future__ import annotations

from typing import ClassVar

from kcm.apimachinery.base import Bool, Model
from kcm.apimachinery.quantity import Quantity


class ObjectFieldSelector(Model):
    """A field of the pod."""

    kubernetes_atomic: ClassVar[bool] = True

    api_version: str | None = None
    field_path: str = ""


class ResourceFieldSelector(Model):
    """A limit or request of a container, divided by `divisor`."""

    kubernetes_atomic: ClassVar[bool] = True

    container_name: str | None = None
    resource: str = ""
    divisor: Quantity | None = None


class ConfigMapKeySelector(Model):
    """A key of a ConfigMap."""

    kubernetes_atomic: ClassVar[bool] = True

    name: str | None = None
    key: str = ""
    optional: Bool | None = None


class SecretKeySelector(Model):
    """A key of a Secret."""

    kubernetes_atomic: ClassVar[bool] = True

    name: str | None = None
    key: str = ""
    optional: Bool | None = None


class EnvVarSource(Model):
    """Where a variable's value comes from; exactly one field is set."""

    field_ref: ObjectFieldSelector | None = None
    resource_field_ref: ResourceFieldSelector | None = None
    config_map_key_ref: ConfigMapKeySelector | None = None
    secret_key_ref: SecretKeySelector | None = None


class EnvVar(Model):
    """A variable in a container's environment."""

    name: str = ""
    value: str | None = None
    value_from: EnvVarSource | None = None


class ConfigMapEnvSource(Model):
    """All keys of a ConfigMap."""

    name: str | None = None
    optional: Bool | None = None


class SecretEnvSource(Model):
    """All keys of a Secret."""

    name: str | None = None
    optional: Bool | None = None


class EnvFromSource(Model):
    """Variables made of the keys of a ConfigMap or a Secret."""

    prefix: str | None = None
    config_map_ref: ConfigMapEnvSource | None = None
    secret_ref: SecretEnvSource | None = None
