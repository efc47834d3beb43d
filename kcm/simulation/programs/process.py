"""The programs of a pod: how they begin, go on as time passes, and end.

Source: getTerminationMessage in pkg/kubelet/kuberuntime/kuberuntime_container.go, Kubernetes 1.36.
"""

from __future__ import annotations

from collections.abc import Generator, Sequence
from dataclasses import dataclass, field

from kcm import errors
from kcm.api.core_v1 import Container, Pod
from kcm.apimachinery.durations import FOREVER
from kcm.helpers.pods import list_containers
from kcm.kubelet.environment.expansion import expand_all
from kcm.kubelet.environment.variables import Lookups, PodLocation, make_environment
from kcm.kubelet.files.log_tail import MOST, join_last
from kcm.kubelet.kuberuntime.configs import name_host
from kcm.simulation.programs.commands import OF_SHELL, PROGRAMS
from kcm.simulation.programs.files import ContainerFiles, Disk, Source
from kcm.simulation.programs.outputs import Output
from kcm.simulation.programs.session import Spent
from kcm.simulation.programs.shell import Exit, Shell
from kcm.simulation.programs.syntax import NotUnderstood, Script, name_of, parse
from kcm.simulation.runtime.containers import Attempt
from kcm.simulation.scripting.images import find_command
from kcm.simulation.scripting.scripts import ContainerScript

MOST_OUTPUT = 64 * 1024  # bytes that a program writes; what follows is dropped
_ROUND = 0.2  # seconds between two looks at a program, whatever number of steps are between them
_SHELLS = ("sh", "ash", "bash", "dash")
_PATH = "/usr/local/sbin:/usr/local/bin:/usr/sbin:/usr/bin:/sbin:/bin"


class Process:
    """A program that runs. Times are seconds since 1970.

    It is `lost` once it is at something that is not understood.
    """

    def __init__(self, files: ContainerFiles, started: float) -> None:
        self.ended = FOREVER
        self.code = 0
        self.lost = False
        self.lines: list[tuple[float, str]] = []  # that are not yet in Redis
        self.is_new = True  # nothing of it is in Redis
        self.is_followed = False  # whether its attempt ends with it
        self._files = files
        self._at = started  # when the next step is
        self._written = ""  # all output
        self._partial = ""  # a line that has not ended
        self._steps: Generator[float, None, int] | None = None

    def begin(self, steps: Generator[float, None, int]) -> None:
        """Sets the steps that the program takes; its exit code is their result."""
        self._steps = steps

    def write(self, text: str) -> None:
        """Takes output of the present step."""
        text = text[: MOST_OUTPUT - len(self._written)]
        self._written += text
        *whole, self._partial = (self._partial + text).split("\n")
        self.lines += [(self._at, line) for line in whole]

    def advance(self, now: float, pod: Pod) -> float:
        """Takes the steps that are due, and returns when to do so again."""
        self._files.take_out(pod)
        while self._steps is not None and self._at <= now:
            try:
                self._at += next(self._steps)
            except StopIteration as end:
                self._end(end.value)
            except Exit as end:
                self._end(end.code)
            except Spent:  # it runs on, and does nothing more
                self._at = FOREVER
            except (NotUnderstood, errors.Temporary):
                self.lost, self._steps = True, None
        self._files.put_away()
        if self._steps is None or self._at == FOREVER:  # it reads no more
            self._files.forget()
            return FOREVER
        return max(self._at, now + _ROUND)

    def _end(self, code: int) -> None:
        self.ended, self.code, self._steps = self._at, code, None
        if self._partial:
            self.lines.append((self._at, self._partial))

    def message(self) -> str:
        """Returns the termination message."""
        written = self._files.message()[:MOST]
        if written or not (self._files.falls_back and self.code):
            return written.decode("utf-8", "replace")
        return join_last(self._written.encode("utf-8", "replace").splitlines(keepends=True))


@dataclass
class PodPrograms:
    """The programs of one pod. `location` is set before they are used."""

    lookups: Lookups
    location: PodLocation = field(default_factory=PodLocation)
    _disks: dict[str, Disk] = field(default_factory=dict)
    _processes: dict[str, tuple[int, Process | None]] = field(default_factory=dict)  # by container

    def prepare(
        self, pod: Pod, spec: Container, own: ContainerScript, number: int, at: float
    ) -> str:
        """Sets up the program of a container's attempt, if it has one that is understood and no
        script of its own.

        Returns why the container cannot be created, such as that a ConfigMap is missing, or "".
        """
        self._processes[spec.name] = number, None
        scripted = own.outcome or own.exit_codes or own.exit_codes_by_index
        if scripted or own.run_for is not None:
            return ""
        try:
            self._processes[spec.name] = number, self._begin(pod, spec, at)
        except NotUnderstood:
            return ""
        except errors.Temporary as error:
            return error.message
        return ""

    def _begin(self, pod: Pod, spec: Container, at: float) -> Process:
        words: Sequence[str] = find_command(spec.image or "", spec.command or (), spec.args or ())
        if not words or name_of(words[0]) not in {*PROGRAMS, *_SHELLS}:
            raise NotUnderstood  # before anything is looked up
        environment = make_environment(pod, spec, self.lookups, self.location)
        words = expand_all(words, environment)
        script = _parse(words, reads=bool(spec.stdin))
        source = Source(self.lookups, self.location)
        files = ContainerFiles(pod, spec, environment, source, self._disks)
        if not any("$" in word or "env" in word for word in words):
            environment = {}  # it is not asked for, and there are many pods
        home = "/" if files.user else "/root"
        basic = {"PATH": _PATH, "HOSTNAME": name_host(pod), "HOME": home}
        process = Process(files, at)
        shell = Shell(files, {**basic, **environment}, process.write, (words[3:] or words)[0])
        if script is None:
            process.begin(PROGRAMS[name_of(words[0])](shell, words))
        else:
            process.begin(shell.run_to_end(script))
        return process

    def _must_recover(self, pod: Pod, attempt: Attempt) -> bool:
        """Reports whether a running attempt was started before the simulator was."""
        status = pod.status
        recovers = (
            *(status.container_statuses or ()),
            *(status.init_container_statuses or ()),
            *(status.ephemeral_container_statuses or ()),
        )
        return attempt.name not in self._processes and any(
            one.name == attempt.name and one.state is not None and one.state.running is not None
            for one in recovers
        )

    def follow(
        self, pod: Pod, attempt: Attempt, own: ContainerScript, now: float, default_end: float
    ) -> float:
        """Advances the program of an attempt if it runs, and returns when to do so again.

        A program that ends ends the attempt; one that is lost leaves it to end at `default_end`.
        """
        if self._must_recover(pod, attempt):
            spec = next(one for one in list_containers(pod.spec) if one.name == attempt.name)
            self.prepare(pod, spec, own, attempt.number, attempt.started)
        elif not attempt.runs(now):
            return FOREVER
        number, process = self._processes.get(attempt.name, (attempt.number, None))
        if process is None or number != attempt.number:
            return FOREVER
        if not process.is_followed and not attempt.stopping:
            attempt.ends = FOREVER
        process.is_followed = True
        due = process.advance(now, pod)
        if process.lost:
            attempt.ends = min(attempt.ends, max(now, default_end))
        elif attempt.runs(process.ended):
            attempt.exit(process.ended, process.code, "Error" if process.code else "Completed")
            attempt.message = process.message()
        return due

    def list_outputs(self, uid: str) -> list[Output]:
        """Returns what was written since `forget_outputs`."""
        return [
            Output(uid, name, number, tuple(process.lines), process.is_new)
            for name, (number, process) in self._processes.items()
            if process is not None and (process.is_new or process.lines)
        ]

    def forget_outputs(self) -> None:
        """Forgets what was written, because it is stored."""
        for _, process in self._processes.values():
            if process is not None:
                process.lines, process.is_new = [], False


def _parse(words: Sequence[str], *, reads: bool) -> Script | None:
    """Returns what a shell is to run, None for another program. A shell without arguments ends at
    once, unless it `reads` commands. Raises NotUnderstood.
    """
    if name_of(words[0]) not in _SHELLS:
        return None
    if len(words) == 1 and not reads:
        return ()
    if len(words) < 3 or words[1] != "-c":
        raise NotUnderstood
    return parse(words[2], OF_SHELL)
