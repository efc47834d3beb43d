"""The stages file, which selects by labels and weights what pods and nodes do.

One of all entries that match a pod or node is chosen at random, in proportion to the weights. The
choice depends only on a pod's uid or a node's name, so that a restarted simulator makes the same
one.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any, TypeVar

from pydantic import TypeAdapter, ValidationError

from kcm import errors
from kcm.api.core_v1 import Node, Pod
from kcm.apimachinery.labels import Selector
from kcm.apimachinery.meta_v1 import KubeObject, LabelSelector
from kcm.apimachinery.yaml_documents import load_yaml_documents
from kcm.simulation.scripting import scripts
from kcm.simulation.scripting.jitter import spread
from kcm.simulation.scripting.scripts import ContainerScript, NodeScript, PodScript

API_VERSION = "simulation.kcm.dev/v1"
KIND = "Stages"
_SELECTOR = TypeAdapter(LabelSelector)
_COMMON = {"name", "selector", "namespace", "weight"}
# The attribute and the parser of each field of the file.
POD_FIELDS = {
    "outcome": scripts.POD_ANNOTATIONS["outcome"],
    "startAfter": scripts.POD_ANNOTATIONS["start-after"],
    "readyAfter": scripts.POD_ANNOTATIONS["ready-after"],
    "runFor": scripts.POD_ANNOTATIONS["run-for"],
    "stopAfter": scripts.POD_ANNOTATIONS["stop-after"],
    "jitter": scripts.POD_ANNOTATIONS["jitter"],
    "exitCodes": scripts.POD_ANNOTATIONS["exit-codes"],
    "exitCodesByIndex": scripts.POD_ANNOTATIONS["exit-codes-by-index"],
    "message": scripts.POD_ANNOTATIONS["message"],
    "cpu": scripts.POD_ANNOTATIONS["cpu"],
    "memory": scripts.POD_ANNOTATIONS["memory"],
    "metrics": scripts.POD_ANNOTATIONS["metrics"],
}
NODE_FIELDS = {
    "state": scripts.NODE_ANNOTATIONS["state"],
    "clockSkew": scripts.NODE_ANNOTATIONS["clock-skew"],
    "after": ("after", scripts.duration),
    "lasts": ("lasts", scripts.duration),
}
Script = TypeVar("Script", PodScript, NodeScript)


@dataclass(frozen=True, slots=True)
class Stage:
    """An entry of the file without its script: which objects it matches, and its weight."""

    name: str
    selector: Selector
    namespace: str | None = None
    weight: int = 1

    def matches(self, obj: KubeObject) -> bool:
        """Reports whether the entry can be chosen for this object."""
        if self.namespace is not None and obj.namespace != self.namespace:
            return False
        return self.selector.matches(obj.metadata.labels)


@dataclass(frozen=True, slots=True)
class Stages:
    """The entries of a stages file, for pods and for nodes."""

    pods: Sequence[tuple[Stage, PodScript]] = ()
    nodes: Sequence[tuple[Stage, NodeScript]] = field(default=())

    def for_pod(self, pod: Pod) -> PodScript:
        """Returns the script of the entry that is chosen for this pod, or an empty script."""
        return _choose(self.pods, pod, pod.uid, scripts.NO_SCRIPT)

    def for_node(self, node: Node) -> NodeScript:
        """Returns the script of the entry that is chosen for this node, or an empty script."""
        return _choose(self.nodes, node, node.name, scripts.NO_NODE_SCRIPT)


NO_STAGES = Stages()


def _choose(
    entries: Sequence[tuple[Stage, Script]], obj: KubeObject, seed: str, none: Script
) -> Script:
    matching = [(stage, script) for stage, script in entries if stage.matches(obj)]
    total = sum(stage.weight for stage, _ in matching)
    point = spread("stage", seed) * total
    for stage, script in matching:
        point -= stage.weight
        if point < 0:
            return script
    return none


def load(path: Path) -> Stages:
    """Reads a stages file. Raises ConfigurationError with the place and the reason."""
    try:
        text = path.read_text("utf-8")
    except (OSError, UnicodeDecodeError) as error:
        raise errors.ConfigurationError(f"the stages file {path} cannot be read: {error}") from None
    return parse(text, str(path))


def parse(text: str, source: str = "<stages>") -> Stages:
    """Parses stages in YAML. `source` is named in errors. Raises ConfigurationError."""
    try:
        documents = load_yaml_documents(text, source)
    except errors.BadRequest as error:
        raise errors.ConfigurationError(error.message) from None
    pods: list[tuple[Stage, PodScript]] = []
    nodes: list[tuple[Stage, NodeScript]] = []
    for number, document in enumerate(documents):
        where = source if len(documents) == 1 else f"{source}, document {number + 1}"
        _check_head(document, where)
        pods += [_pod_stage(e, w) for e, w in _entries(document, "pods", where)]
        nodes += [_node_stage(e, w) for e, w in _entries(document, "nodes", where)]
    return Stages(pods, nodes)


def _check_head(document: Mapping[str, Any], where: str) -> None:
    for name, value in (("apiVersion", API_VERSION), ("kind", KIND)):
        if document.get(name) != value:
            raise _fault(f"{where}: {name}", f'must be "{value}", not "{document.get(name)}"')
    _refuse_unknown(document, {"apiVersion", "kind", "metadata", "pods", "nodes"}, where)


def _entries(
    document: Mapping[str, Any], name: str, where: str
) -> list[tuple[Mapping[str, Any], str]]:
    entries = document.get(name) or []
    if not isinstance(entries, list):
        raise _fault(f"{where}: {name}", "must be a list")
    result: list[tuple[Mapping[str, Any], str]] = []
    for index, entry in enumerate(entries):
        place = f"{where}: {name}[{index}]"
        if not isinstance(entry, dict):
            raise _fault(place, "must be a mapping")
        result.append((entry, place))
    return result


def _pod_stage(entry: Mapping[str, Any], where: str) -> tuple[Stage, PodScript]:
    _refuse_unknown(entry, _COMMON | {"containers"} | POD_FIELDS.keys(), where)
    named = entry.get("containers") or {}
    if not isinstance(named, dict):
        raise _fault(f"{where}.containers", "must be a mapping of container names")
    scripts_by_name = {}
    for name, fields in named.items():
        place = f"{where}.containers.{name}"
        if not isinstance(fields, dict):
            raise _fault(place, "must be a mapping")
        _refuse_unknown(fields, set(POD_FIELDS), place)
        scripts_by_name[str(name)] = ContainerScript(**_read(fields, POD_FIELDS, place))
    main = ContainerScript(**_read(entry, POD_FIELDS, where))
    return _stage(entry, where), PodScript(main, scripts_by_name)


def _node_stage(entry: Mapping[str, Any], where: str) -> tuple[Stage, NodeScript]:
    _refuse_unknown(entry, (_COMMON - {"namespace"}) | NODE_FIELDS.keys(), where)
    return _stage(entry, where), NodeScript(**_read(entry, NODE_FIELDS, where))


def _stage(entry: Mapping[str, Any], where: str) -> Stage:
    weight = entry.get("weight", 1)
    if not isinstance(weight, int) or isinstance(weight, bool) or weight < 0:
        raise _fault(f"{where}.weight", f'must be a whole number from 0 on, not "{weight}"')
    namespace = entry.get("namespace")
    if namespace is not None and not isinstance(namespace, str):
        raise _fault(f"{where}.namespace", "must be text")
    try:
        selector = Selector.from_label_selector(
            _SELECTOR.validate_python(entry.get("selector") or {})
        )
    except ValidationError as error:
        first = error.errors()[0]
        place = ".".join(str(part) for part in ("selector", *first["loc"]))
        raise _fault(f"{where}.{place}", first["msg"]) from None
    except (ValueError, errors.KcmError) as error:
        raise _fault(f"{where}.selector", str(error)) from None
    return Stage(str(entry.get("name", "")), selector, namespace, weight)


def _read(
    entry: Mapping[str, Any], fields: Mapping[str, tuple[str, Any]], where: str
) -> dict[str, Any]:
    values: dict[str, Any] = {}
    for name, (attribute, read) in fields.items():
        if name not in entry:
            continue
        try:
            values[attribute] = read(_text(entry[name]))
        except ValueError as error:
            raise _fault(f"{where}.{name}", str(error)) from None
    return values


def _text(value: Any) -> str:
    """Returns a value in the form of an annotation: lists with commas, mappings with semicolons."""
    if isinstance(value, list):
        return ",".join(str(part) for part in value)
    if isinstance(value, dict):
        return ";".join(f"{key}={_text(part)}" for key, part in value.items())
    if value is None or isinstance(value, bool):
        raise ValueError("must be text or a number")
    return str(value)


def _refuse_unknown(entry: Mapping[str, Any], names: set[str], where: str) -> None:
    for name in entry:
        if name not in names:
            raise _fault(f"{where}.{name}", f"unknown field; there are: {', '.join(sorted(names))}")


def _fault(where: str, why: str) -> errors.ConfigurationError:
    return errors.ConfigurationError(f"{where}: {why}")


EXAMPLE = """\
# Stages of simulated pods and nodes: kcm nodes --stages stages.yaml
# Of all entries that match, one is chosen in proportion to the weights (1 if none
# is given), by the object's uid, so always the same one. Annotations of the object
# itself win: simulation.kcm.dev/outcome, /run-for, /exit-codes and so on.
apiVersion: simulation.kcm.dev/v1
kind: Stages
pods:
- name: one worker in ten crashes
  selector: {matchLabels: {app: worker}}
  weight: 1
  outcome: crash
- name: the other nine start slowly
  selector: {matchLabels: {app: worker}}
  weight: 9
  startAfter: 2s
  readyAfter: 3s
  jitter: 1s
- name: jobs fail twice, then succeed
  namespace: default
  selector: {matchLabels: {app: batch}}
  runFor: 5s
  exitCodes: [1, 1, 0]
  containers:
    prepare: {runFor: 2s}  # an init container or a sidecar, by its name
- name: a load of two CPUs comes for a minute and goes, shared out among the pods
  selector: {matchLabels: {app: shop}}
  cpu: shared 100m for 1m, 2 for 1m
  metrics: {requests-per-second: 20}
nodes:
- name: one zone goes silent for a minute, ten seconds after its nodes start
  selector: {matchLabels: {topology.kubernetes.io/zone: dark}}
  state: silent
  after: 10s
  lasts: 1m
"""
