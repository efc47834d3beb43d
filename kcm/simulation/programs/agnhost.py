"""Programs of agnhost, the image of Kubernetes' conformance suite, that need no network.

Source: test/images/agnhost/{pause,entrypoint-tester,mounttest,etc-hosts}, Kubernetes 1.36.
"""

from __future__ import annotations

import json
import re
import stat
from collections.abc import Callable, Generator, Mapping, Sequence

from kcm.apimachinery.durations import FOREVER
from kcm.simulation.programs.files import Status
from kcm.simulation.programs.session import Session
from kcm.simulation.programs.syntax import NotUnderstood

Waiting = Generator[float, None, int]
_FLAG = re.compile(r"--([a-z_0-9]+)=(.*)", re.DOTALL)
_NEW_CONTENT = "mount-tester new file\n"
_RETRY_EVERY = 2.0  # seconds between two looks at a file
_NEW_FILES = {"new_file_0644": 0o644, "new_file_0666": 0o666,
              "new_file_0660": 0o660, "new_file_0777": 0o777}  # fmt: skip


def run(session: Session, words: Sequence[str]) -> Waiting:
    """Runs a program of agnhost. Raises NotUnderstood for those that are not known."""
    program = _PROGRAMS.get(words[1] if len(words) > 1 else "")
    if program is None:
        raise NotUnderstood
    return program(session, words)


def _pause(session: Session, words: Sequence[str]) -> Waiting:
    session.write("Paused\n")
    yield FOREVER
    return 0


def _entrypoint_tester(session: Session, words: Sequence[str]) -> Waiting:
    yield from ()
    session.write(f"[{' '.join(words)}]\n")
    return 0


def _etc_hosts(session: Session, words: Sequence[str]) -> Waiting:
    yield from ()
    session.write(f"{session.read('/etc/hosts')}\n")
    return 0


def _mounttest(session: Session, words: Sequence[str]) -> Waiting:
    flags = dict(_flag(word) for word in words[2:])
    looking = float(flags.pop("retry_time", "180"))
    stop = flags.pop("break_on_expected_content", "true") == "true"
    looped = flags.pop("file_content_in_loop", "")
    if not flags.keys() <= {*_NEW_FILES, *_LOOKS, "file_content"}:
        raise NotUnderstood
    failed = [not _show(session, "fs_type", flags)]
    failed += [not _write_new(session, flags[name], _NEW_FILES[name])
               for name in _NEW_FILES if name in flags]  # fmt: skip
    failed += [not _show(session, name, flags) for name in ("file_mode", "file_perm", "file_owner")]
    if "file_content" in flags:
        failed.append(not _read(session, flags["file_content"]))
    if looped:
        failed.append((yield from _read_again(session, looped, looking, stop=stop)))
    return int(any(failed))


def _flag(word: str) -> tuple[str, str]:
    flag = _FLAG.fullmatch(word)
    if flag is None or (flag[1] == "retry_time" and not flag[2].isdecimal()):
        raise NotUnderstood
    return flag[1], flag[2]


_LOOKS: Mapping[str, tuple[str, Callable[[str, Status], str]]] = {
    "fs_type": ("statfs", lambda path, status: f"mount type of {path}: {status.kind}\n"),
    "file_mode": ("Stat", lambda path, status: f"mode of file {path}: {_mode(status)}\n"),
    "file_perm": (
        "Stat",
        lambda path, status: f"perms of file {path}: {stat.filemode(stat.S_IFREG | status.mode)}\n",
    ),
    "file_owner": (
        "stat",
        lambda path, status: (
            f"owner UID of {path}: {status.owner}\nowner GID of {path}: {status.group}\n"
        ),
    ),
}


def _mode(status: Status) -> str:
    return stat.filemode((stat.S_IFDIR if status.is_folder else stat.S_IFREG) | status.mode)


def _show(session: Session, name: str, flags: Mapping[str, str]) -> bool:
    """Shows what a flag asks of a file, if it is given; returns whether that was possible."""
    if name not in flags:
        return True
    (call, describe), path = _LOOKS[name], flags[name]
    try:
        session.write(describe(json.dumps(path), session.files.stat(path)))
    except OSError as error:
        session.write(f"error from {call}({json.dumps(path)}): {_say(error, 'stat')}\n")
        return False
    return True


def _write_new(session: Session, path: str, mode: int) -> bool:
    try:
        session.files.write(path, _NEW_CONTENT.encode(), mode=mode)
    except OSError as error:
        session.write(f"error writing new file {json.dumps(path)}: {_say(error, 'open')}\n")
        return False
    return _read(session, path)


def _read(session: Session, path: str) -> bool:
    try:
        content = session.read(path)
    except OSError as error:
        text = f"error reading file content for {json.dumps(path)}: {_say(error, 'open')}\n"
        session.write(text)
        return False
    session.write(f"content of file {json.dumps(path)}: {content}\n")
    return True


def _read_again(
    session: Session, path: str, seconds: float, *, stop: bool
) -> Generator[float, None, bool]:
    """Reads a file every two seconds; returns whether that failed last."""
    failed, passed = False, 0.0
    while passed < seconds:
        session.spend()
        try:
            content = session.read(path)
        except OSError as error:
            failed = True
            session.write(f"Error reading file {path}: {_say(error, 'open')}, retrying\n")
        else:
            failed = False
            session.write(f"content of file {json.dumps(path)}: {content}\n")
            if stop and content == _NEW_CONTENT:
                break
            if stop:
                session.write(f"Unexpected content. Expected: {_NEW_CONTENT}. Retrying\n")
        yield _RETRY_EVERY
        passed += _RETRY_EVERY
    return failed


def _say(error: OSError, call: str) -> str:
    return f"{call} {error.filename}: {(error.strerror or '').lower()}"


_PROGRAMS: Mapping[str, Callable[[Session, Sequence[str]], Waiting]] = {
    "entrypoint-tester": _entrypoint_tester,
    "etc-hosts": _etc_hosts,
    "mounttest": _mounttest,
    "pause": _pause,
}
