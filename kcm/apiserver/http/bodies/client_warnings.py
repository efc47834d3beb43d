"""Warnings about the objects that clients write and delete, and pruning of custom objects."""

from __future__ import annotations

from kcm.api.apiextensions_v1 import CustomResourceDefinition
from kcm.api.batch_v1 import Job
from kcm.api.custom.kinds import CustomObject
from kcm.api.custom.structural_schema import parse
from kcm.api.scheme import Resource
from kcm.apiextensions import pruning
from kcm.apiextensions.cel import rules
from kcm.apiextensions.schemas import structural
from kcm.apimachinery.base import drop_unknown
from kcm.apimachinery.meta_v1 import KubeObject
from kcm.store.options import DeleteOptions

NO_PROTOBUF = (
    "the body of the request was in an unknown format - accepted media types include: "
    "application/json, application/yaml, application/apply-patch+yaml"
)
PODS_ARE_PRESERVED = (
    "child pods are preserved by default when jobs are deleted; set propagationPolicy=Background "
    "to remove them or set propagationPolicy=Orphan to suppress this warning"
)


def of(obj: KubeObject) -> list[str]:
    """Returns warnings about an object, which its sender gets."""
    return _of_definition(obj) if isinstance(obj, CustomResourceDefinition) else []


def of_deletion(resource: Resource, options: DeleteOptions) -> list[str]:
    """Returns what is said to a client that deletes Jobs and does not decide about their pods.

    Source: pkg/registry/batch/job/storage/storage.go, Kubernetes 1.36.
    """
    undecided = resource.name == Job.resource.name and options.propagation_policy is None
    return [PODS_ARE_PRESERVED] if undecided else []


def _of_definition(definition: CustomResourceDefinition) -> list[str]:
    warnings: list[str] = []
    for index, version in enumerate(definition.spec.versions):
        schema = (version.schema_ or {}).get("openAPIV3Schema")
        if not isinstance(schema, dict) or structural.check(schema, ""):
            continue  # it will be rejected
        missing = rules.find_unchecked(parse(schema))
        warnings += [
            f"spec.versions[{index}].schema: rules are stored and not checked: {name} is not "
            "available here"
            for name in sorted(missing)
        ]
    return warnings


def prune(obj: KubeObject) -> KubeObject:
    """Returns the object without the fields that its kind's schema does not have.

    It is called before managed fields are recorded, so that no field manager owns such fields.
    """
    obj = drop_unknown(obj)
    if not isinstance(obj, CustomObject):
        return obj
    return obj.with_content(pruning.root(obj.content, obj.custom.schema))
