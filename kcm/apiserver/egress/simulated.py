"""Logs of containers on simulated nodes, and what they say to those who attach or run a command.

There is no kubelet to ask. What a container has written follows from its pod: from its script, its
probes, and when its status says that it started and ended.
"""

from __future__ import annotations

import asyncio
import json
from collections.abc import AsyncIterator, Iterable, Iterator, Sequence
from contextlib import suppress
from dataclasses import dataclass, replace
from datetime import datetime

from starlette.types import Scope

from kcm import errors
from kcm.api.core_v1 import Container, ContainerStatus, Node, Pod
from kcm.api.simulated import SIMULATOR_LABEL
from kcm.apimachinery.meta_v1 import format_time
from kcm.helpers.pods import list_containers
from kcm.kubelet.cri import StreamOptions
from kcm.kubelet.server.channels import (
    ERROR,
    STDERR,
    STDOUT,
    build_exit_status,
    build_success,
)
from kcm.kubelet.server.logs import LogOptions
from kcm.kubelet.server.messages import MessageConnection
from kcm.kubelet.server.upgrading import accept_channels
from kcm.simulation.programs.outputs import read_output
from kcm.simulation.scripting import output, scripts
from kcm.simulation.scripting.output import Line, OutputRun
from kcm.simulation.scripting.script_lines import ExecAnswer, find_answer
from kcm.store import Store

_PIECE = 64 * 1024  # bytes of lines that are sent together
FOLLOW_INTERVAL = 1.0  # seconds between two looks at a container whose output is followed
# Seconds until a command says something. kubectl 1.33 reads before it has made its streams, and
# drops what comes at once; client-go 1.36 waits.
START_OF_COMMAND = 0.05


def is_simulated(store: Store, node: str) -> bool:
    """Reports whether a node is simulated, and has no kubelet. Raises NotFound."""
    return SIMULATOR_LABEL in store.get(Node.resource, node).labels


@dataclass(frozen=True)
class SimulatedContainer:
    """A container on a simulated node, of a pod that may since have changed."""

    store: Store
    key: str  # of the pod
    uid: str
    name: str

    def look(self, *, previous: bool = False) -> tuple[Pod, OutputRun | None]:
        """Returns the pod, and the container's attempt or None. It blocks.

        Raises NotFound if the pod is gone.
        """
        pod = self.store.get(Pod.resource, self.key)
        if pod.uid != self.uid:
            raise errors.NotFound.of("pods", pod.name)
        run = output.find_run(pod, self._spec(pod), self._status(pod), previous=previous)
        if run is not None:
            written = read_output(self.store.io, self.uid, self.name, run.number)
            run = replace(run, written=written)
        return pod, run

    def _spec(self, pod: Pod) -> Container:
        for container in list_containers(pod.spec):
            if container.name == self.name:
                return container
        raise errors.NotFound.of("pods", pod.name)

    def _status(self, pod: Pod) -> ContainerStatus | None:
        status = pod.status
        statuses = (
            *(status.container_statuses or ()),
            *(status.init_container_statuses or ()),
            *(status.ephemeral_container_statuses or ()),
        )
        return next((one for one in statuses if one.name == self.name), None)

    async def follow(self, run: OutputRun, since: datetime) -> AsyncIterator[Sequence[Line]]:
        """Yields the lines of an attempt after `since`, until it ends or its pod is gone.

        The lines that have come together are yielded together, as a script may write thousands in
        a second, and are made in a thread.
        """
        seen, present = since, run
        while True:
            now = self.store.clock.now()
            lines = await asyncio.to_thread(output.list_rest, present, seen, now)
            if lines:
                yield lines
            if present.ended is not None:
                return
            seen = max(seen, present.last_seen(lines, now))
            await asyncio.sleep(FOLLOW_INTERVAL)
            try:
                newest = await asyncio.to_thread(self._look_again, run.number)
            except errors.KcmError:
                return
            if newest is None:
                return
            present = newest

    def _look_again(self, number: int) -> OutputRun | None:
        """Returns the attempt with this number, None if nothing is known of it any more."""
        for previous in (False, True):
            _, run = self.look(previous=previous)
            if run is not None and run.number == number:
                return run
        return None


@dataclass(frozen=True)
class SimulatedLog:
    """A request for the log of a container on a simulated node."""

    container: SimulatedContainer
    options: LogOptions
    run: OutputRun | None
    lines: Sequence[Line]  # until `at`
    at: datetime

    async def pieces(self) -> AsyncIterator[bytes]:
        """Yields the log in the form that the options ask for."""
        left = self.options.limit_bytes
        async for lines in self._batches():
            for piece in _join(map(self._format, lines)):
                await asyncio.sleep(0)  # a client that reads fast would give others no turn
                if left is None:
                    yield piece
                    continue
                yield piece[:left]
                left -= min(left, len(piece))
                if left == 0:
                    return

    async def _batches(self) -> AsyncIterator[Sequence[Line]]:
        yield self.lines
        if self.options.follow and self.run is not None and self.run.ended is None:
            async for lines in self.container.follow(self.run, self.at):
                yield lines

    def _format(self, line: Line) -> bytes:
        at, text = line
        return (f"{format_time(at)} {text}\n" if self.options.timestamps else f"{text}\n").encode()


def open_log(store: Store, pod: Pod, container: str, options: LogOptions) -> SimulatedLog:
    """Returns the log of a container. It blocks.

    Raises BadRequest if the attempt before is asked for and there is none.
    """
    found = SimulatedContainer(store, pod.key, pod.uid, container)
    _, run = found.look(previous=options.previous)
    if run is None and options.previous:
        raise errors.BadRequest(
            f'previous terminated container "{container}" in pod "{pod.name}" not found'
        )
    now = store.clock.now()
    lines = output.list_lines(run, options.since, now) if run else []
    if options.tail_lines is not None:
        lines = lines[max(len(lines) - options.tail_lines, 0) :]
    return SimulatedLog(found, options, run, lines, run.last_seen(lines, now) if run else now)


@dataclass(frozen=True)
class SimulatedAttach:
    """A request to attach to a container on a simulated node, or to run a command in it."""

    container: SimulatedContainer
    wanted: StreamOptions
    said: str  # what the script says
    run: OutputRun
    answer: ExecAnswer | None = None  # of a command

    async def serve(self, scope: Scope) -> None:
        """Says what the script says, then what the container writes, until it ends or the client
        leaves.

        Raises BadRequest if the client asks for no upgrade, or for unknown protocols.
        """
        socket = await accept_channels(scope, self.wanted)
        if socket is None:
            return
        leaving = asyncio.ensure_future(_wait_for_end(socket))
        talking = asyncio.ensure_future(self._talk(socket))
        try:
            await asyncio.wait({leaving, talking}, return_when=asyncio.FIRST_COMPLETED)
        finally:
            for task in (leaving, talking):
                task.cancel()
            await asyncio.gather(leaving, talking, return_exceptions=True)
            with suppress(OSError):
                await socket.close()

    async def _talk(self, socket: MessageConnection) -> None:
        with suppress(OSError):
            await self._say(socket, "")
            if self.answer is not None:
                await asyncio.sleep(START_OF_COMMAND)
                await self._answer(socket, self.answer)
                return
            for line in self.said.splitlines():
                await self._say(socket, line + "\n")
            async for lines in self.container.follow(self.run, self.container.store.clock.now()):
                for piece in _join(f"{text}\n".encode() for _, text in lines):
                    await asyncio.sleep(0)
                    await self._say(socket, piece.decode())
            await socket.send(bytes([ERROR]) + json.dumps(build_success()).encode())

    async def _answer(self, socket: MessageConnection, answer: ExecAnswer) -> None:
        channel = STDERR if answer.code and self.wanted.stderr else STDOUT
        if answer.text:
            await self._say(socket, answer.text + "\n", channel)
        status = build_exit_status(answer.code)
        await socket.send(bytes([ERROR]) + json.dumps(status).encode())

    async def _say(self, socket: MessageConnection, text: str, channel: int = STDOUT) -> None:
        if self.wanted.tty:
            text = text.replace("\n", "\r\n")
        if self.wanted.stdout or channel == STDERR:
            await socket.send(bytes([channel]) + text.encode())


def _join(lines: Iterable[bytes]) -> Iterator[bytes]:
    """Yields the lines in pieces, of which each but the last has _PIECE bytes or more."""
    piece = bytearray()
    for line in lines:
        piece += line
        if len(piece) >= _PIECE:
            yield bytes(piece)
            piece.clear()
    if piece:
        yield bytes(piece)


async def _wait_for_end(socket: MessageConnection) -> None:
    """Returns when the client has left. What it types is dropped."""
    with suppress(OSError):
        while await socket.receive() is not None:
            pass


def open_attach(
    store: Store,
    pod: Pod,
    container: str,
    wanted: StreamOptions,
    command: Sequence[str] | None = None,
) -> SimulatedAttach:
    """Returns the request to attach to a running container, or to run a command in it. It blocks.

    Raises NotFound if the container does not run, and NothingRuns for a command if the pod's script
    has no answers.
    """
    found = SimulatedContainer(store, pod.key, pod.uid, container)
    _, run = found.look()
    if run is None or run.ended is not None:
        raise errors.NotFound(
            f'container not found ("{container}")', resource="containers", name=container
        )
    script, _ = scripts.of_pod(pod.annotations, scripts.NO_SCRIPT)
    ordinary = any(one.name == container for one in pod.spec.containers)
    own = script.of(container, ordinary=ordinary)
    if command is not None:
        if not own.exec:
            raise NothingRuns(
                f"pod {pod.name} is on the simulated node {pod.spec.node_name}: no command runs "
                f"there, except those to which its annotation {scripts.PREFIX}exec has answers"
            )
        return SimulatedAttach(found, wanted, "", run, find_answer(own.exec, command))
    default = f"container {container} of pod {pod.name} is simulated: it reads nothing"
    return SimulatedAttach(found, wanted, own.attach or default, run)


class NothingRuns(errors.ApiError):
    """no command runs in a simulated container"""

    code = 501
    reason = "NotImplemented"
