"""The text that `kcm up` prints once everything runs: addresses, and what to try next."""

from __future__ import annotations

import os
import shlex
import sys
from pathlib import Path

from kcm.cli.connect import printable_url
from kcm.cli.up.plan import FLOWER_USER, PROCESS, UpOptions
from kcm.settings import Settings

EXAMPLE = Path("examples") / "01-replicaset" / "web.yaml"


def banner(settings: Settings, options: UpOptions, server: str, flower_password: Path) -> str:
    """Returns the text with addresses, files and commands to copy."""
    rows = [("Redis", _redis(settings, server))]
    if options.redis_port:
        rows.append(("", f"127.0.0.1:{options.redis_port}, password in {settings.password_file}"))
    if options.api_port:
        rows.append(("API", f"https://127.0.0.1:{options.api_port}/  (for kubectl, see below)"))
    if options.flower_port:
        rows.append(("Flower", f"http://127.0.0.1:{options.flower_port}/"))
        rows.append(("", f"user {FLOWER_USER}, password {_secret(flower_password)}"))
    if options.health_port:
        manager = f"http://127.0.0.1:{options.health_port}"
        rows.append(("Metrics", f"{manager}/metrics"))
        rows.append(("Health", f"{manager}/healthz?verbose"))
    if options.nodes:
        count = "1 simulated node" if options.nodes == 1 else f"{options.nodes} simulated nodes"
        rows.append(("Nodes", f"{count}: {_command(settings)} nodes --help"))
    if options.real_node:
        title = "" if options.nodes else "Nodes"
        pods = "runs containers"
        if not options.real_node.endpoint:
            pods = f"for pods that tolerate {PROCESS}"
        words = f"1 real node, {options.real_node.name}: {pods}"
        rows.append((title, words))
    rows.append(("Logs", f"{settings.state_dir / 'log'}{os.sep}"))
    lines = [f"  {title:<8} {text}" for title, text in rows]
    tries = "\n".join(f"  {line}" for line in _tries(settings, options))
    return "\n".join(
        ["", *lines, "", "Try in another terminal:", tries, "", "Ctrl-C stops it all."]
    )


def _redis(settings: Settings, server: str) -> str:
    place = (settings.redis_url and printable_url(settings)) or str(settings.socket_path.absolute())
    return f"{place}  ({server})"


def _secret(path: Path) -> str:
    if "KCM_FLOWER_PASSWORD" in os.environ:
        return "from KCM_FLOWER_PASSWORD"
    return f"{path.read_text().strip()} (in {path})" if path.exists() else f"in {path}"


def _tries(settings: Settings, options: UpOptions) -> list[str]:
    kcm = _command(settings)
    if other := os.environ.get("KCM_KUBECONFIG"):  # the objects are another API server's
        server = "" if other == "in-cluster" else f" --kubeconfig {shlex.quote(other)}"
        return [f"kubectl{server} get pods -w", f"{kcm} status"]
    lines = [
        f"{kcm} apply -f {_example()}",
        f"{kcm} get rs,pods -w",
        f"{kcm} status",
    ]
    if options.api_port:
        kubeconfig = shlex.quote(str(settings.state_dir / "kubeconfig"))
        lines += [f"export KUBECONFIG={kubeconfig}", "kubectl get pods -w"]
    return lines


def _command(settings: Settings) -> str:
    """Returns the words that call `kcm` from this folder, with environment variables if
    necessary.
    """
    own = Path(sys.argv[0]).absolute()
    words = [_near(own) if own.name == "kcm" else f"{_near(Path(sys.executable))} -m kcm.cli.main"]
    if not settings.redis_url and settings.state_dir != Path.cwd() / ".kcm":
        words.insert(0, f"KCM_STATE_DIR={shlex.quote(str(settings.state_dir))}")
    return " ".join(words)


def _example() -> str:
    beside = Path(__file__).parents[3] / EXAMPLE
    return _near(beside) if beside.exists() else "web.yaml"


def _near(path: Path) -> str:
    """Returns the path relative to the current folder if it is inside, otherwise unchanged."""
    try:
        return str(path.relative_to(Path.cwd()))
    except ValueError:
        return str(path)
