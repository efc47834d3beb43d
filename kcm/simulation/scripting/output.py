"""What a simulated container writes: a line for its start, each of its probes and its end, and what
its script says. Pure functions.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from datetime import datetime, timedelta
from heapq import merge

from kcm.api.core_v1 import Container, ContainerStatus, Pod, Probe
from kcm.apimachinery.durations import FOREVER
from kcm.simulation.scripting import scripts
from kcm.simulation.scripting.behaviour import Pace, behaviour_of
from kcm.simulation.scripting.script_lines import ScriptLine

MOST_LINES = 10_000  # of one reading; of more, the newest

Line = tuple[datetime, str]


@dataclass(frozen=True, slots=True)
class OutputRun:
    """One attempt of a container. `ended` is None while it runs."""

    container: Container
    number: int
    started: datetime
    ended: datetime | None = None
    exit_code: int = 0
    reason: str = ""
    ready_after: float = 0.0  # seconds from its start until its probes succeed
    lines: tuple[ScriptLine, ...] = ()
    written: tuple[Line, ...] | None = None  # by its program, which then writes all there is

    def last_seen(self, lines: Sequence[Line], until: datetime) -> datetime:
        """Returns up to when `lines`, which were listed at `until`, are all there is.

        What a program writes may be stored a little later.
        """
        if self.written is None:
            return until
        return lines[-1][0] if lines else self.started - timedelta(seconds=1)


def find_run(
    pod: Pod, container: Container, status: ContainerStatus | None, *, previous: bool = False
) -> OutputRun | None:
    """Returns the attempt whose output is asked for, as the container's status tells it.

    It is the present or last one, with `previous` the one before. Returns None if there is none.
    """
    state, last = (status.state, status.last_state) if status else (None, None)
    before = last.terminated if last else None
    ended = before if previous else (state.terminated if state else None)
    running = state.running if state and not previous else None
    number = status.restart_count if status else 0
    if running is None and ended is None:
        ended = before
    if running is None and (previous or ended is before):
        number = max(number - 1, 0)
    started = running.started_at if running else ended.started_at if ended else None
    if started is None:
        return None
    script, _ = scripts.of_pod(pod.annotations, scripts.NO_SCRIPT)
    ordinary = any(one.name == container.name for one in pod.spec.containers)
    return OutputRun(
        container,
        number,
        started,
        ended.finished_at if ended else None,
        ended.exit_code if ended else 0,
        (ended.reason or "") if ended else "",
        behaviour_of(pod, container, number, script, Pace()).ready_after,
        script.of(container.name, ordinary=ordinary).log,
    )


def list_lines(run: OutputRun, since: datetime | None, until: datetime) -> list[Line]:
    """Returns what the container has written after `since`, up to `until`, in order of time."""
    if run.written is not None:
        written = [line for line in run.written if line[0] <= until]
        return written if since is None else [line for line in written if line[0] > since]
    end = until if run.ended is None else min(until, run.ended)
    first = run.started - timedelta(seconds=1) if since is None else since
    name = run.container.name
    most = MOST_LINES // (len(run.lines) + 4)
    sources = [
        iter([(run.started, f"container {name} started (simulated), attempt {run.number}")]),
        *(_script_line(run, line, first, end, most) for line in run.lines),
        *_probes(run, first, end, most),
    ]
    lines = list(merge(*sources, key=lambda line: line[0]))
    if run.ended is not None and run.ended <= until:
        lines.append(_end_line(run, run.ended))
    return [line for line in lines if line[0] > first][-MOST_LINES:]


def list_rest(run: OutputRun, since: datetime | None, until: datetime) -> list[Line]:
    """Returns what `list_lines` does, and the line for the end of an attempt that has ended.

    A status tells the end later, and in whole seconds, so it may be before `since`.
    """
    lines = list_lines(run, since, until)
    if run.written is None and run.ended is not None and since is not None and run.ended <= since:
        lines.append(_end_line(run, run.ended))
    return lines


def _end_line(run: OutputRun, ended: datetime) -> Line:
    reason = f" ({run.reason})" if run.reason else ""
    return ended, f"container {run.container.name} exited with code {run.exit_code}{reason}"


def _script_line(
    run: OutputRun, line: ScriptLine, first: datetime, end: datetime, most: int
) -> Iterator[Line]:
    if line.at is not None:
        # A status tells times in whole seconds, so it may run a little longer than that.
        last = end + timedelta(seconds=1) if end == run.ended else end
        if run.started <= line.at <= last and line.at > first:
            yield line.at, line.text
        return
    for at in _times(run.started, line.after, line.every, (first, end), most):
        yield at, line.text


def _probes(run: OutputRun, first: datetime, end: datetime, most: int) -> Iterator[Iterator[Line]]:
    container = run.container
    for kind, probe in (
        ("startup", container.startup_probe),
        ("liveness", container.liveness_probe),
        ("readiness", container.readiness_probe),
    ):
        if probe is not None:
            yield _probe_lines(run, kind, probe, (first, end), most)


def _probe_lines(
    run: OutputRun, kind: str, probe: Probe, within: tuple[datetime, datetime], most: int
) -> Iterator[Line]:
    period = float(probe.period_seconds or 10)
    delay = float(probe.initial_delay_seconds or 0) or min(period, 1.0)
    ready = run.ready_after
    for at in _times(run.started, delay, period, within, most):
        passed = (at - run.started).total_seconds()
        fails = kind != "liveness" and (ready == FOREVER or passed < ready)
        yield at, f"{kind} probe {'failed' if fails else 'succeeded'}"


def _times(
    start: datetime, after: float, every: float, within: tuple[datetime, datetime], most: int
) -> Iterator[datetime]:
    """Yields start + after, and then every so many seconds, those after the first moment of
    `within` and up to its second.

    Of more than `most`, only the newest are yielded.
    """
    (first, end), number = within, 0
    if every:
        earliest = max((first - start).total_seconds(), 0.0)
        newest = (end - start).total_seconds() - most * every
        number = max(int((max(earliest, newest) - after) / every), 0)
    while True:
        at = start + timedelta(seconds=after + number * every)
        if at > end:
            return
        if at > first:
            yield at
        if not every:
            return
        number += 1
