"""kcm on three hosts, as docker-compose.ha.yml has it: its programs, and who restarts them."""

from __future__ import annotations

import secrets
import signal
import ssl
import subprocess
import sys
import threading
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import contextmanager, suppress
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

import httpx
import psutil
import redis

from kcm import errors
from kcm.settings import Settings
from kcm.testing.waiting import let_time_pass
from tests.chaos.failovers import Process
from tests.chaos.hosts import probe
from tests.chaos.hosts.network import Host, Network, build_clock_library
from tests.chaos.hosts.switch import Rule
from tests.chaos.world import World

ROOT = Path(__file__).parents[3]
DISK = 256  # MiB, of each Redis
DOWN_AFTER = 2000  # milliseconds
API_PORT = 8001
START = 180.0  # seconds until it must be there
KINDS = ("redis", "sentinel", "apiserver", "manager", "worker", "beat", "nodes")
# Which kinds run on which host.
_PLACES: Mapping[str, Sequence[int]] = {
    "sentinel": (0, 1, 2), "redis": (0, 1, 2), "apiserver": (0, 1), "manager": (1, 2),
    "worker": (1, 2), "beat": (0, 2), "nodes": (2,),
}  # fmt: skip


@dataclass
class Program:
    """One program on a host, which is started again when it ends, unless somebody holds it."""

    kind: str
    host: Host
    arguments: Sequence[str]
    environment: Mapping[str, str]
    process: psutil.Popen | None = None
    held: bool = False
    starts: int = 0
    lock: threading.Lock = field(default_factory=threading.Lock)

    @property
    def name(self) -> str:
        return f"{self.kind}@{self.host.name}"

    def start(self) -> None:
        """Starts it if it does not run."""
        with self.lock:
            if self.held or (self.process is not None and self.process.poll() is None):
                return
            self.starts += 1
            with (self.host.folder / f"{self.kind}.log").open("ab") as log:
                self.process = psutil.Popen(
                    self.host.command(self.arguments), cwd=ROOT, start_new_session=True,
                    env=self.host.environment(self.environment),
                    stdin=subprocess.DEVNULL, stdout=log, stderr=log,
                )  # fmt: skip

    def family(self) -> list[psutil.Process]:
        """Returns its processes."""
        if self.process is None:
            return []
        with suppress(psutil.NoSuchProcess):
            return [self.process, *self.process.children(recursive=True)]
        return []

    def signal(self, number: int) -> None:
        """Sends all of its processes a signal."""
        for process in self.family():
            with suppress(psutil.NoSuchProcess):
                process.send_signal(number)


class Rig:
    """The hosts, and all that runs on them."""

    def __init__(self, folder: Path, durability: str) -> None:
        self.folder = folder
        library = build_clock_library(folder)
        self.hosts = [Host(number, folder, library) for number in (1, 2, 3)]
        self.network = Network(self.hosts)
        self._rules: list[Rule] = []
        self._lock = threading.Lock()
        self._over = threading.Event()
        self.state = folder / "state"
        self.probes = folder / "probes"
        self.probes.mkdir()
        self._passwords = {
            name: secrets.token_hex(8)
            for name in ("WORKER", "INJECTOR", "FLOWER_REDIS", "REPLICA", "SENTINEL", "ADMIN")
        }
        self.settings = Settings(
            redis_url=self.url, redis_durability=durability, state_dir=folder / "clients"
        )
        self.durability = durability
        # It follows the sentinels as processes of kcm do: what a former master says is no fault.
        self._process = Process(self.settings, "checks")
        self.io, self.store = self._process.io, self._process.store
        self.world = World(self.store, self.io)
        self.programs = [
            self._plan(kind, self.hosts[number])
            for kind, numbers in _PLACES.items()
            for number in numbers
        ]

    # --- what runs

    @property
    def url(self) -> str:
        password = self._passwords["WORKER"]
        nodes = ",".join(f"{host.address}:26379" for host in self.hosts)
        query = f"sentinel_username=worker&sentinel_password={password}"
        return f"sentinel://worker:{password}@{nodes}/kcm/0?{query}"

    def _plan(self, kind: str, host: Host) -> Program:
        kcm = [sys.executable, "-W", "ignore", "-m", "kcm.cli.main"]
        of_redis = {
            **{f"KCM_{name}_PASSWORD": word for name, word in self._passwords.items()},
            "KCM_SENTINELS": " ".join(h.address for h in self.hosts),
            "KCM_REDIS_ADDRESS": host.address,
            "KCM_REDIS_MASTER": self.hosts[0].address,
            "KCM_SENTINEL_CONFIG": str(host.folder / "sentinel.conf"),
            "KCM_SENTINEL_DOWN_AFTER": str(DOWN_AFTER),
            "KCM_ACL_FILE": str(host.folder / "users.acl"),
        }
        of_kcm = {
            "KCM_REDIS_URL": self.url,
            "KCM_REDIS_DURABILITY": self.durability,
            "KCM_STATE_DIR": str(self.state if kind == "apiserver" else host.folder),
            "KCM_LOG_LEVEL": "warning",
            "KCM_SECURE_PORT": "0",
            "KCM_WORKER_MANAGER": "false",
            "KCM_CONTROLLER_MODULE": str(Path(probe.__file__)),
            "PROBE_FOLDER": str(self.probes),
            "PYTHONPATH": str(ROOT),
        }
        disk = host.folder / "disk"
        if kind == "redis":
            disk.mkdir()
            mount = ["mount", "-t", "tmpfs", "-o", f"size={DISK}m", "tmpfs", str(disk)]
            subprocess.run(mount, check=True)
        sans = [f"--tls-san={h.address}" for h in self.hosts]
        commands: Mapping[str, Sequence[str]] = {
            "redis": ["sh", "deploy/redis/start.sh", "--dir", str(disk), "--bind", "0.0.0.0",
                      "--protected-mode", "no", "--save", "",
                      "--auto-aof-rewrite-min-size", "16mb"],
            "sentinel": ["sh", "deploy/redis/sentinel.sh"],
            "apiserver": [*kcm, "apiserver", "--bind-address=0.0.0.0", f"--port={API_PORT}", *sans,
                          "--cluster-authority", "--shutdown-delay-duration=1s"],
            "manager": [*kcm, "manager"],
            "worker": [*kcm, "worker", "-c", "2", "-n", f"worker@{host.name}"],
            "beat": [*kcm, "beat"],
            "nodes": [*kcm, "nodes", "--count", "3"],
        }  # fmt: skip
        redis_kinds = ("redis", "sentinel")
        return Program(kind, host, commands[kind], of_redis if kind in redis_kinds else of_kcm)

    def start(self) -> None:
        """Starts everything, the first API server before the others, and restarts what ends."""
        for program in self.programs:
            if program.kind in ("redis", "sentinel"):
                program.start()
        self.wait(self.list_faults_of_redis, "Redis", START)
        first, *others = [p for p in self.programs if p.kind == "apiserver"]
        for program in others:
            program.held = True  # until the first has made the keys that all have
        threading.Thread(target=self._supervise, daemon=True).start()
        self.wait(lambda: [] if self._is_ready(first.host) else ["not ready"], first.name, START)
        for program in others:
            program.held = False

    def _supervise(self) -> None:
        while not self._over.wait(0.5):
            for program in self.programs:
                program.start()

    def stop(self) -> None:
        """Kills everything."""
        self._over.set()
        self._process.close()
        for program in self.programs:
            program.held = True
            program.signal(signal.SIGKILL)

    # --- what faults use

    @contextmanager
    def rules(self, *rules: Rule) -> Iterator[None]:
        """Lets rules of the network hold beside those of others."""
        with self._lock:
            self._rules += rules
            self.network.set_rules(*self._rules)
        try:
            yield
        finally:
            with self._lock:
                for rule in rules:
                    self._rules.remove(rule)
                self.network.set_rules(*self._rules)

    def ask(self, host: Host, *command: str, port: int = 6379) -> Any:
        """Sends a command to a Redis or a sentinel, as an administrator. Raises RedisError."""
        user = "ADMIN" if port == 6379 else "SENTINEL"
        with redis.Redis(
            host.address, port, username=user.lower(), password=self._passwords[user],
            socket_timeout=2, socket_connect_timeout=2, decode_responses=True,
        ) as client:  # fmt: skip
            return client.execute_command(*command)

    def ask_sentinel(self, host: Host, *command: str) -> Any:
        """Sends a command to a sentinel. Raises RedisError."""
        return self.ask(host, "SENTINEL", *command, port=26379)

    def master(self) -> Host:
        """Returns the host whose Redis the first sentinel that answers names."""
        for host in self.hosts:
            with suppress(redis.RedisError):
                address, _ = self.ask_sentinel(host, "GET-MASTER-ADDR-BY-NAME", "kcm")
                return next(h for h in self.hosts if h.address == address)
        raise AssertionError("no sentinel answers")

    # --- whether all is well

    def wait(self, faults: Callable[[], Sequence[str]], what: str, within: float) -> None:
        """Waits until nothing is wrong. Raises AssertionError with what is."""
        wrong: Sequence[str] = ["never looked"]
        for _ in range(int(within / 0.25)):
            try:
                wrong = faults()
            except (redis.RedisError, errors.KcmError, AssertionError, OSError) as error:
                wrong = [repr(error)]
            if not wrong:
                return
            let_time_pass(0.25, "looking costs the processes that are to settle")
        raise AssertionError(f"{what}: {list(wrong)[:10]}")

    def list_faults_of_redis(self) -> list[str]:
        """Returns what is wrong with Redis and the sentinels."""
        master, wrong = self.master(), []
        for host in self.hosts:
            answer = self.ask_sentinel(host, "MASTER", "kcm")
            state = answer if isinstance(answer, dict) else _pair(answer)
            flags = str(state["flags"])
            if state["ip"] != master.address or flags != "master":
                wrong.append(f"{host.name} says {state['ip']} is {flags}")
            if (int(state["num-slaves"]), int(state["num-other-sentinels"])) != (2, 2):
                wrong.append(f"{host.name} knows {state['num-slaves']} replicas")
        infos = {h.name: self.ask(h, "INFO", "replication") for h in self.hosts}
        theirs = infos[master.name]
        online = [k for k, v in theirs.items() if k.startswith("slave") and _is_online(v)]
        if theirs["role"] != "master" or len(online) != 2:
            wrong.append(f"{master.name} is {theirs['role']} of {len(online)} replicas")
        return wrong

    def list_faults(self) -> list[str]:
        """Returns what is wrong with the whole; nothing when all runs, and every count is exact."""
        wrong = [f"{p.name} does not run" for p in self.programs if p.held or not p.family()]
        wrong += self.list_faults_of_redis()
        for program in self.programs:
            if program.kind == "apiserver" and not self._is_ready(program.host):
                wrong.append(f"{program.name} is not ready")
        return wrong or self.world.list_faults()

    def _is_ready(self, host: Host) -> bool:
        try:
            url = f"https://{host.address}:{API_PORT}/readyz"
            return self.connect(3).get(url).status_code == httpx.codes.OK
        except (httpx.HTTPError, OSError):
            return False

    def connect(self, timeout: float) -> httpx.Client:
        """Returns a client of the API servers, as the administrator. Raises OSError before the
        first of them has made its files.
        """
        token = (self.state / "apiserver-token").read_text().strip()
        trust = ssl.create_default_context(cafile=str(self.state / "apiserver.crt"))
        headers = {"Authorization": f"Bearer {token}"}
        return httpx.Client(verify=trust, headers=headers, timeout=timeout)

    def tell_logs(self) -> str:
        """Returns the last lines of every log."""
        tails = []
        for log in sorted(self.folder.glob("h*/*.log")):
            lines = log.read_text(errors="replace").splitlines()[-12:]
            tails.append(f"--- {log.parent.name}/{log.name}\n" + "\n".join(lines))
        return "\n".join(tails)


def _pair(reply: Sequence[str]) -> dict[str, str]:
    return dict(zip(reply[::2], reply[1::2], strict=True))


def _is_online(replica: Any) -> bool:
    return isinstance(replica, dict) and replica.get("state") == "online"
