"""Objects of every kind that are drawn from the shapes of the models.

They are valid ones with other values in some fields; the API accepts most of them.
"""

from __future__ import annotations

import random
from typing import Any

from hypothesis import strategies as st

from kcm import errors
from kcm.api import codec
from kcm.api.scheme import BUILT_IN
from kcm.apiextensions import structure
from kcm.apiextensions.structure import Shape
from kcm.apimachinery.base import Model
from kcm.apimachinery.meta_v1 import KubeObject
from kcm.kinds import defaults
from kcm.store import rules
from kcm.store.options import Subresource
from kcm.testing.builders import START
from tests.samples import BODIES, manifest

WORDS = (
    *("", "a", "b", "web", "c", "sample", "default", "n1", "app", "cpu", "memory", "pods", "http"),
    *("kubernetes.io/hostname", "example.com/gpu", "ephemeral-storage", "a b", "*", "/", "/a"),
    *("10.0.0.1", "10.0.0.0/8", "fd00::1", "True", "False", "Unknown", "metadata.name", "80"),
    *("Always", "Never", "OnFailure", "TCP", "UDP", "SCTP", "NoSchedule", "NoExecute", "Exists"),
    *("Equal", "In", "NotIn", "DoesNotExist", "Gt", "DoNotSchedule", "ScheduleAnyway", "HTTP"),
    *("RollingUpdate", "OnDelete", "Recreate", "Parallel", "OrderedReady", "Indexed", "Forbid"),
    *("Replace", "Allow", "ClusterIP", "NodePort", "LoadBalancer", "ExternalName", "None"),
    *("Running", "Failed", "Succeeded", "Pending", "Ready", "Pod", "Container", "Resource"),
    *("Utilization", "AverageValue", "Value", "Pods", "Object", "External", "Percent", "Min"),
    *("Deployment", "ReplicaSet", "apps/v1", "v1", "Europe/Berlin", "* * * * *", "@daily"),
    *("Count", "FailJob", "Ignore", "FailIndex", "Retain", "Delete", "Cluster", "Local", "=="),
)
_AMOUNTS = (
    *("0", "1", "100m", "1Gi", "1.5", "-1", "1e3", "9223372036854775807", "10Ei", "1n"),
    *("0.0000000001", "1E", "12e30"),
)
_NUMBERS = (0, 1, 2, 3, 5, 80, 100, 420, 511, 512, 1000, 65535, 65536, -1, 2**31 - 1, -(2**31))
_EITHER = (0, 1, 3, 80, 65535, 2**31 - 1, "0%", "50%", "100%", "9" * 9 + "%", "http", "-1%")
_TIMES = (
    *("2024-01-01T00:00:00Z", "2030-01-01T00:00:00Z", "0001-01-01T00:00:00Z"),
    *("9999-12-31T23:59:59Z", "1970-01-01T00:00:00Z"),
)
_DEPTH = 5


def of_shape(shape: Shape, depth: int) -> st.SearchStrategy[Any]:
    """Returns a strategy for JSON that a field of this shape may hold."""
    match shape.kind:
        case "string":
            return st.sampled_from(WORDS)
        case "boolean":
            return st.booleans()
        case "integer":
            return st.sampled_from(_NUMBERS if shape.bits == 32 else (*_NUMBERS, 2**62, -(2**62)))
        case "quantity":
            return st.sampled_from(_AMOUNTS)
        case "time":
            return st.sampled_from(_TIMES)
        case "microtime":
            return st.sampled_from(_TIMES).map(lambda text: text.replace("Z", ".000000Z"))
        case "intstr":
            return st.sampled_from(_EITHER)
        case "list":
            assert shape.item is not None
            return st.lists(of_shape(shape.item, depth - 1), max_size=2)
        case "map":
            assert shape.item is not None
            return st.dictionaries(
                st.sampled_from(WORDS), of_shape(shape.item, depth - 1), max_size=2
            )
        case "struct":
            assert isinstance(shape.model, type)
            return of_model(shape.model, depth - 1)
    return st.sampled_from(({}, {"a": 1}))


@st.composite
def of_model(draw: st.DrawFn, model: type[Model], depth: int = _DEPTH) -> dict[str, Any]:
    """Draws a struct with some of its fields; those that must be there are in every one."""
    if depth <= 0:
        return {}
    fields = structure.fields(model)
    chosen = draw(st.lists(st.sampled_from(sorted(fields)), max_size=3, unique=True))
    needed = [name for name, field in fields.items() if not field.optional]
    names = dict.fromkeys([*needed, *chosen])
    return {name: draw(of_shape(fields[name].shape, depth)) for name in names}


@st.composite
def bodies(draw: st.DrawFn, name: str) -> dict[str, Any]:
    """Draws a sample of a kind, with up to four fields set anywhere."""
    resource = BUILT_IN.by_name(name)
    body = manifest(name)
    for _ in range(draw(st.integers(0, 4))):
        _change(draw, body, resource.model)
    return body


def _change(draw: st.DrawFn, body: dict[str, Any], model: type[Model]) -> None:
    """Sets one field of the object, or of a struct inside it."""
    settled = {"apiVersion", "kind"}  # of the object; a struct inside may draw its own
    while True:
        fields = structure.fields(model)
        inside = [
            name
            for name, field in fields.items()
            if field.shape.struct is not None and body.get(name) and name != "metadata"
        ]
        weights = [*inside, *inside, *inside, *sorted(fields.keys() - settled)]
        name = draw(st.sampled_from(weights))
        field = fields[name]
        if name not in inside or not draw(st.integers(0, 5)):
            if name == "metadata":
                continue
            body[name] = draw(of_shape(field.shape, _DEPTH))
            return
        value, inner = body[name], field.shape.struct
        body = draw(st.sampled_from(value)) if isinstance(value, list) else value
        assert isinstance(inner, type)
        model, settled = inner, set()


def accept(body: dict[str, Any]) -> KubeObject | None:
    """Returns the object as the store has it after a create and an update of its status.

    None if the API refuses one of them.
    """
    try:
        obj = defaults.apply(codec.decode(body, BUILT_IN))
        bare = defaults.apply(codec.decode({**body, "status": None}, BUILT_IN))
    except errors.KcmError:
        return None
    resource = obj.resource
    try:
        new_obj = rules.prepare_create(bare, resource, START, rng=random.Random(1))
    except errors.KcmError:
        return None
    new_obj = new_obj.with_metadata(resource_version="7")
    if not body.get("status") or not resource.has_status:
        return new_obj
    with_status = obj.with_metadata(**dict(new_obj.metadata))
    try:
        return rules.prepare_modification(with_status, new_obj, resource, Subresource.STATUS)
    except errors.KcmError:
        return None


def objects(name: str) -> st.SearchStrategy[KubeObject]:
    """Returns a strategy for objects of a kind that the API accepts."""
    stored = bodies(name).map(accept)
    return stored.filter(lambda obj: obj is not None)  # type: ignore[return-value] # None is out


NAMES = tuple(BODIES)
