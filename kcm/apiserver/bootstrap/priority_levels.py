"""Creates the FlowSchemas and PriorityLevelConfigurations of every cluster, and corrects them.

A mandatory one gets its spec back. A suggested one does while its annotation
`apf.kubernetes.io/autoupdate-spec` is true, or, without a valid one, while nobody has changed its
spec. One that is deleted is created again. Each FlowSchema has the condition `Dangling`, which says
whether its priority level is missing.

Source: pkg/registry/flowcontrol/ensurer and rest/storage_flowcontrol.go, and
presyncFlowSchemaStatus in staging/src/k8s.io/apiserver/pkg/util/flowcontrol/apf_controller.go,
Kubernetes 1.36.
"""

from __future__ import annotations

from collections.abc import Collection, Iterator
from contextlib import contextmanager, suppress
from datetime import datetime

import structlog

from kcm import errors
from kcm.api.flowcontrol_v1 import (
    FlowSchema,
    FlowSchemaCondition,
    PriorityLevelConfiguration,
)
from kcm.api.priority_levels import (
    AUTOUPDATE,
    MANDATORY_LEVELS,
    MANDATORY_SCHEMAS,
    SUGGESTED_LEVELS,
    SUGGESTED_SCHEMAS,
)
from kcm.store import Store, Subresource
from kcm.store.admission.ensuring import ensure_objects

log = structlog.get_logger("kcm.apiserver")

SYNC_EVERY = 60.0  # seconds, as upstream
RESOURCES = (FlowSchema.resource, PriorityLevelConfiguration.resource)
_DANGLING = "Dangling"
_Configuration = FlowSchema | PriorityLevelConfiguration
_TRUE = frozenset({"1", "t", "T", "true", "TRUE", "True"})
_FALSE = frozenset({"0", "f", "F", "false", "FALSE", "False"})


def ensure(store: Store) -> None:
    """Creates or corrects all of them. Raises StoreUnavailable."""
    mandatory: list[_Configuration] = [*MANDATORY_LEVELS.values(), *MANDATORY_SCHEMAS.values()]
    wanted: list[_Configuration] = [*SUGGESTED_LEVELS, *SUGGESTED_SCHEMAS, *mandatory]
    for obj, stored in ensure_objects(store, wanted):
        corrected = correct(stored, obj, mandatory=obj in mandatory)
        if corrected is None:
            continue
        with _warn_about(obj), suppress(errors.NotFound):
            store.update(corrected)


def mark_all(store: Store) -> None:
    """Gives every FlowSchema the condition `Dangling`. Raises StoreUnavailable."""
    schemas = store.list_all(FlowSchema.resource).objects
    levels = {level.name for level in store.list_all(PriorityLevelConfiguration.resource).objects}
    now, items = store.clock.now(), []
    for schema in schemas:
        marked = mark_dangling(schema, levels, now)
        with _warn_about(schema):
            item = store.build_update(marked, schema, subresource=Subresource.STATUS)
            if item is not None:
                items.append(item)
    if items:
        store.write(items)  # what somebody changed meanwhile has another pass


@contextmanager
def _warn_about(obj: _Configuration) -> Iterator[None]:
    """Logs why an object is not corrected. The next pass tries again, and the others go on."""
    try:
        yield
    except errors.ApiError as error:
        log.warning(
            "An object of flow control cannot be corrected",
            kind=obj.resource.kind,
            name=obj.name,
            error=error.message,
        )


def mark_dangling(schema: FlowSchema, levels: Collection[str], now: datetime) -> FlowSchema:
    """Returns a FlowSchema with the condition `Dangling`, the same object if it is right."""
    name = schema.spec.priority_level_configuration.name
    message = f'This FlowSchema references the PriorityLevelConfiguration object named "{name}" '
    status, reason, end = (
        ("False", "Found", "and it exists")
        if name in levels
        else ("True", "NotFound", "but there is no such object")
    )
    message += end
    conditions = schema.status.conditions or []
    old = next((one for one in conditions if one.type == _DANGLING), None)
    if old is not None and (old.status, old.reason, old.message) == (status, reason, message):
        return schema
    since = now if old is None or old.status != status else old.last_transition_time
    new = FlowSchemaCondition(
        type=_DANGLING, status=status, last_transition_time=since, reason=reason, message=message
    )
    others = [one for one in conditions if one.type != _DANGLING]
    return schema.replace(status=schema.status.replace(conditions=[*others, new]))


def correct(
    current: _Configuration, wanted: _Configuration, *, mandatory: bool
) -> _Configuration | None:
    """Returns `current` with the spec and annotation that it should have.

    Returns None if it has them.
    """
    follows = mandatory or _follows(current)
    noted = _truth(current.annotations.get(AUTOUPDATE, "")) == follows
    wanted_spec = _keep_exempt(current, wanted)
    spec = wanted_spec if follows else current.spec
    if noted and spec == current.spec:
        return None
    annotations = dict(current.annotations)
    if not noted:
        annotations[AUTOUPDATE] = "true" if follows else "false"
    return current.replace(spec=spec).with_metadata(annotations=annotations)


def _keep_exempt(current: _Configuration, wanted: _Configuration) -> object:
    """Returns the wanted spec, with the shares of an exempt level as they are."""
    levels = PriorityLevelConfiguration
    if not (isinstance(current, levels) and isinstance(wanted, levels)):
        return wanted.spec
    if wanted.spec.exempt is None:
        return wanted.spec
    return wanted.spec.replace(exempt=current.spec.exempt or wanted.spec.exempt)


def _follows(current: _Configuration) -> bool:
    """Reports whether a suggested object is to get the spec of this version of kcm."""
    truth = _truth(current.annotations.get(AUTOUPDATE, ""))
    return current.metadata.generation == 1 if truth is None else truth


def _truth(text: str) -> bool | None:
    """Returns what Go's ParseBool makes of a text, None if it is no truth value."""
    if text in _TRUE:
        return True
    return False if text in _FALSE else None
