"""Scripts: what a simulated pod or node does, from defaults, a stages file and annotations.

Annotations override the stages file. An annotation of a pod is for its main containers, or for the
container whose name follows a dot: `simulation.kcm.dev/outcome.migrate: fail`.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Mapping
from dataclasses import dataclass, field, fields, replace
from typing import Any

from kcm.apimachinery.durations import FOREVER, parse_seconds
from kcm.simulation.scripting.incidents import Exit, parse_exit, parse_readiness
from kcm.simulation.scripting.profiles import Profile, profile, profiles
from kcm.simulation.scripting.script_lines import ExecAnswer, ScriptLine, parse_exec, parse_log

PREFIX = "simulation.kcm.dev/"
INDEX_ANNOTATION = "batch.kubernetes.io/job-completion-index"
FAILURES_ANNOTATION = "batch.kubernetes.io/job-index-failure-count"

# What each outcome means, for --help and the documents.
OUTCOMES: Mapping[str, str] = {
    "run": "runs until the pod is deleted (the default with restartPolicy Always)",
    "succeed": "exits with 0 after runFor (the default with other restart policies)",
    "fail": "exits with exitCodes (1 if none are given) after runFor",
    "crash": "fails right after each start, so it ends in CrashLoopBackOff",
    "oom": "is killed for memory after runFor: 137, OOMKilled",
    "unhealthy": "fails its liveness probe after runFor and is started again",
    "never-ready": "runs, but its readiness probe fails",
    "never-start": "stays in ContainerCreating",
    "image-pull-error": "ErrImagePull, then ImagePullBackOff",
}
NODE_STATES: Mapping[str, str] = {
    "silent": "neither renews its lease nor reports; its pods are left alone",
    "not-ready": "reports Ready=False: the container runtime is down",
    "memory-pressure": "reports MemoryPressure=True",
    "disk-pressure": "reports DiskPressure=True",
    "pid-pressure": "reports PIDPressure=True",
}


@dataclass(frozen=True, slots=True)
class ContainerScript:
    """The script of one container.

    None is the default for its kind of container. Times are seconds.
    """

    outcome: str | None = None
    start_after: float | None = None  # pulling and creating
    ready_after: float | None = None  # from its start until it is ready
    run_for: float | None = None  # from its start until the outcome
    stop_after: float | None = None  # from SIGTERM to its exit; FOREVER: it has to be killed
    jitter: float = 0.0  # the most that is added to start_after, ready_after and run_for
    exit_codes: tuple[int, ...] = ()  # of each attempt; the last one repeats
    exit_codes_by_index: Mapping[int, tuple[int, ...]] = field(default_factory=dict)
    message: str = ""  # of a failed pull, or of the exit
    cpu: Profile | None = None  # its usage while it runs
    memory: Profile | None = None
    metrics: Mapping[str, Profile] = field(default_factory=dict)  # the pod's, by name
    log: tuple[ScriptLine, ...] = ()  # what it writes besides its start, probes and end
    attach: str = ""  # what it says to those who attach
    exec: tuple[ExecAnswer, ...] = ()  # what commands in it write
    exit: Exit | None = None  # besides the outcome
    ready: bool | None = None  # what its readiness probe says instead of the above

    def over(self, other: ContainerScript) -> ContainerScript:
        """Returns this script, with values of `other` for fields that have their defaults here."""
        given = {f.name: getattr(self, f.name) for f in fields(self)}
        return replace(other, **{k: v for k, v in given.items() if v != getattr(EMPTY, k)})


EMPTY = ContainerScript()


@dataclass(frozen=True, slots=True)
class PodScript:
    """The script of one pod: that of its main containers, and those of others by container name."""

    main: ContainerScript = EMPTY
    named: Mapping[str, ContainerScript] = field(default_factory=dict)

    def of(self, container: str, *, ordinary: bool) -> ContainerScript:
        """Returns the script of one container. `ordinary` says that it is a main container."""
        own = self.named.get(container)
        if not ordinary:
            return own or EMPTY
        return self.main if own is None else own.over(self.main)


NO_SCRIPT = PodScript()


@dataclass(frozen=True, slots=True)
class NodeScript:
    """The script of one node.

    Its states begin `after` seconds after its start, for `lasts` seconds.
    """

    states: frozenset[str] = frozenset()
    clock_skew: float = 0.0  # seconds by which its clock is ahead
    after: float = 0.0
    lasts: float = FOREVER


NO_NODE_SCRIPT = NodeScript()


def duration(text: str) -> float:
    """Parses a duration in seconds, which must not be negative. Raises ValueError."""
    value = parse_seconds(text)
    if value < 0:
        raise ValueError(f'must not be negative, but is "{text}"')
    return value


def outcome(text: str) -> str:
    """Parses an outcome. Raises ValueError with the names of all outcomes."""
    if text not in OUTCOMES:
        raise ValueError(f'"{text}" is no outcome; there are: {", ".join(OUTCOMES)}')
    return text


def exit_codes(text: str) -> tuple[int, ...]:
    """Parses exit codes like `1,1,0`, one for each attempt; the last one repeats.

    Raises ValueError.
    """
    codes = [part.strip() for part in text.split(",")]
    if not all(re.fullmatch(r"\d{1,3}", part) and int(part) <= 255 for part in codes):
        raise ValueError(f'must be numbers from 0 to 255 like "1,1,0", not "{text}"')
    return tuple(int(part) for part in codes)


def exit_codes_by_index(text: str) -> dict[int, tuple[int, ...]]:
    """Parses `2=1,0; 5=137`: exit codes for completion indexes of a Job. Raises ValueError."""
    by_index: dict[int, tuple[int, ...]] = {}
    for part in text.split(";"):
        index, equals, codes = part.partition("=")
        if not equals or not index.strip().isdigit():
            raise ValueError(f'must be like "2=1,0; 5=137", not "{text}"')
        by_index[int(index)] = exit_codes(codes)
    return by_index


def node_states(text: str) -> frozenset[str]:
    """Parses states like `not-ready,memory-pressure`. Raises ValueError with all states."""
    states = frozenset(part.strip() for part in text.split(",") if part.strip())
    if unknown := sorted(states - NODE_STATES.keys()):
        raise ValueError(f'"{unknown[0]}" is no state; there are: {", ".join(NODE_STATES)}')
    return states


# The attribute and the parser of each annotation, whose name follows the prefix.
POD_ANNOTATIONS: Mapping[str, tuple[str, Callable[[str], Any]]] = {
    "outcome": ("outcome", outcome),
    "start-after": ("start_after", duration),
    "ready-after": ("ready_after", duration),
    "run-for": ("run_for", duration),
    "stop-after": ("stop_after", duration),
    "jitter": ("jitter", duration),
    "exit-codes": ("exit_codes", exit_codes),
    "exit-codes-by-index": ("exit_codes_by_index", exit_codes_by_index),
    "message": ("message", str),
    "cpu": ("cpu", profile),
    "memory": ("memory", profile),
    "metrics": ("metrics", profiles),
}
# What containers write. They are read where logs are asked for, which no stages file is.
OUTPUT_ANNOTATIONS: Mapping[str, tuple[str, Callable[[str], Any]]] = {
    "log": ("log", parse_log),
    "attach": ("attach", str),
    "exec": ("exec", parse_exec),
}
# What happens to containers now, which is about one pod and has no place in a stages file.
INCIDENT_ANNOTATIONS: Mapping[str, tuple[str, Callable[[str], Any]]] = {
    "exit": ("exit", parse_exit),
    "ready": ("ready", parse_readiness),
}
_OF_PODS = {**POD_ANNOTATIONS, **OUTPUT_ANNOTATIONS, **INCIDENT_ANNOTATIONS}
NODE_ANNOTATIONS: Mapping[str, tuple[str, Callable[[str], Any]]] = {
    "state": ("states", node_states),
    "clock-skew": ("clock_skew", parse_seconds),
}


@dataclass(frozen=True, slots=True)
class Fault:
    """An annotation that is not valid, and why it is not."""

    annotation: str
    why: str

    def __str__(self) -> str:
        return f"annotation {self.annotation}: {self.why}"


def of_pod(annotations: Mapping[str, str], base: PodScript) -> tuple[PodScript, list[Fault]]:
    """Returns the pod's script, and its invalid annotations. `base` is from the stages file."""
    given: dict[str, dict[str, Any]] = {}
    faults: list[Fault] = []
    for name, text in annotations.items():
        if not name.startswith(PREFIX):
            continue
        key, _, container = name.removeprefix(PREFIX).partition(".")
        if key not in _OF_PODS:
            faults.append(Fault(name, f"unknown; there are: {', '.join(_OF_PODS)}"))
            continue
        attribute, read = _OF_PODS[key]
        try:
            given.setdefault(container, {})[attribute] = read(text)
        except ValueError as error:
            faults.append(Fault(name, str(error)))
    if not given:
        return base, faults
    main = ContainerScript(**given.pop("", {})).over(base.main)
    named = {
        name: ContainerScript(**values).over(base.named.get(name, EMPTY))
        for name, values in given.items()
    }
    return PodScript(main, {**base.named, **named}), faults


def of_node(annotations: Mapping[str, str], base: NodeScript) -> tuple[NodeScript, list[Fault]]:
    """Returns the node's script, and its invalid annotations. `base` is from the stages file.

    States of an annotation apply at once and as long as the annotation exists.
    """
    given: dict[str, Any] = {}
    faults: list[Fault] = []
    for key, (attribute, read) in NODE_ANNOTATIONS.items():
        text = annotations.get(PREFIX + key)
        if text is None:
            continue
        try:
            given[attribute] = read(text)
        except ValueError as error:
            faults.append(Fault(PREFIX + key, str(error)))
    if "states" in given:
        given |= {"after": 0.0, "lasts": FOREVER}
    return (replace(base, **given) if given else base), faults
