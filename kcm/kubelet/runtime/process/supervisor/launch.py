"""Starts a process inside a container: in its control group, with its limits, user and streams."""

from __future__ import annotations

import fcntl
import os
import resource
import signal
import termios

from kcm.kubelet.runtime.process.supervisor import privileges
from kcm.kubelet.runtime.process.supervisor.mounts import secret_mounts_of, set_up_mounts
from kcm.kubelet.runtime.process.supervisor.system import die_with_parent
from kcm.kubelet.runtime.process.wire import Fields, get_number, get_text

_CANNOT_START = 128
_NOT_FOUND = "executable file not found in $PATH"


class StartError(Exception):
    """The process could not be started. The message is for people."""


def start(launch: Fields, argv: list[str], streams: list[int], *, tty: bool) -> int:
    """Forks and executes a program; returns its pid. It leads a session of its own.

    `launch` is the container's launch record. `streams` become standard input, output and error;
    with `tty`, the first is the session's terminal. Raises StartError.
    """
    reader, writer = os.pipe()  # an exec closes it, so end of file without data means success
    pid = os.fork()
    if pid == 0:
        _become(launch, argv, streams, tty, writer)
    os.close(writer)
    failure = b""
    while chunk := os.read(reader, 4096):
        failure += chunk
    os.close(reader)
    if failure:
        os.waitpid(pid, 0)
        raise StartError(failure.decode("utf-8", "replace"))
    return pid


def _become(launch: Fields, argv: list[str], streams: list[int], tty: bool, writer: int) -> None:
    """Becomes the program, in the child process. Never returns."""
    try:
        _prepare(launch, streams, tty)
        environment = dict(pair.split("=", 1) for pair in launch.get("env", []))
        failure = _execute(argv, environment)
    except BaseException as error:  # noqa: BLE001 - the child must not return to the parent's code
        failure = f"{type(error).__name__}: {error}"
    os.write(writer, failure.encode("utf-8", "replace"))
    os._exit(_CANNOT_START)


def _execute(argv: list[str], environment: dict[str, str]) -> str:
    """Replaces the process by the program. If that fails, returns why, in runc's words.

    It does not use `os.execvpe`, which imports a module that another user may not be able to read.
    """
    program, why = argv[0], ""
    folders = [""] if "/" in program else environment.get("PATH", "").split(":")
    for folder in folders:
        try:
            os.execve(f"{folder}/{program}" if folder else program, argv, environment)
        except (FileNotFoundError, NotADirectoryError):
            continue
        except OSError as error:
            why = why or (error.strerror or "").lower()
    missing = "no such file or directory" if "/" in program else _NOT_FOUND
    return f'exec: "{program}": {why or missing}'


def _prepare(launch: Fields, streams: list[int], tty: bool) -> None:
    os.setsid()
    os.umask(0o022)
    library = privileges.load_library(launch)
    for group in launch.get("cgroup", []):
        _write(f"{group}/cgroup.procs", "0")
    if launch.get("oom_score_adj"):
        _try_write("/proc/self/oom_score_adj", get_text(launch, "oom_score_adj"))
    # First they get numbers above 9: one of them may have the target number of another.
    moved = [fcntl.fcntl(fd, fcntl.F_DUPFD_CLOEXEC, 10) for fd in streams]
    for target, fd in enumerate(moved):
        os.dup2(fd, target)
    if tty:
        fcntl.ioctl(0, termios.TIOCSCTTY, 0)
    set_up_mounts(launch.get("read_only", []), secret_mounts_of(launch))
    privileges.give_up_privileges(launch, library)
    _limit(launch)
    _change_user(launch)
    os.chdir(get_text(launch, "cwd", "/"))
    _reset_signals()
    die_with_parent()


def _limit(launch: Fields) -> None:
    resource.setrlimit(resource.RLIMIT_CORE, (0, 0))
    if data := get_number(launch, "rlimit_data"):
        resource.setrlimit(resource.RLIMIT_DATA, (data, data))
    if most := get_number(launch, "rlimit_nproc"):
        resource.setrlimit(resource.RLIMIT_NPROC, (most, most))


def _change_user(launch: Fields) -> None:
    if gid := get_text(launch, "gid"):
        if os.geteuid() == 0:
            os.setgroups([int(group) for group in (gid, *launch.get("group", []))])
        os.setresgid(int(gid), int(gid), int(gid))
    if uid := get_text(launch, "uid"):
        os.setresuid(int(uid), int(uid), int(uid))


def _reset_signals() -> None:
    """Resets the two signals that Python ignores; otherwise the program would ignore them too."""
    for number_ in (signal.SIGPIPE, signal.SIGXFSZ):
        signal.signal(number_, signal.SIG_DFL)
    signal.pthread_sigmask(signal.SIG_SETMASK, set())


def _write(path: str, text: str) -> None:
    with open(path, "w", encoding="ascii") as file:
        file.write(text)


def _try_write(path: str, text: str) -> None:
    try:
        _write(path, text)
    except OSError:
        return  # lowering the score takes a privilege; the container keeps its parent's
