"""Runs the conformance suite, and writes docs/conformance.md."""

from __future__ import annotations

import shutil
import subprocess
from collections.abc import Iterator
from contextlib import AbstractContextManager, nullcontext
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import click
import re2

from tools.conformance import page, results, rig
from tools.conformance.lanes import run_specs
from tools.conformance.suite import AGAIN, FAILED, PASSED, Outcome, Suite

_ROOT = Path(__file__).parents[2]
_PAGE = _ROOT / "docs" / "conformance.md"


@dataclass(frozen=True)
class RunOptions:
    """The flags of `run`."""

    program: Path
    column: str
    kubeconfig: Path | None
    lanes: int
    timeout: float
    only: str
    skip: str
    missing: bool
    kubectl: str
    logs: Path
    container_runtime_endpoint: str | None
    kubelets: int
    beside: tuple[Path, ...]

    def chooses(self, spec: str) -> bool:
        """Reports whether a spec is to be run."""
        if self.skip and re2.search(self.skip, spec):
            return False
        before = results.read(self.column) if self.missing else None
        passed = before is not None and before.specs.get(spec) == PASSED
        return bool(re2.search(self.only, spec)) and not passed


@click.group(context_settings={"help_option_names": ["-h", "--help"], "max_content_width": 100})
def main() -> None:
    """Run Kubernetes' conformance suite against kcm.

    The suite is the program e2e.test of a release of Kubernetes. docs/conformance.md says how to
    get it.
    """


@main.command()
@click.option(
    "--e2e-test",
    "program",
    required=True,
    type=click.Path(exists=True, path_type=Path),
    help="The program e2e.test of the version of Kubernetes that kcm serves.",
)
@click.option(
    "--column",
    default="simulated",
    show_default=True,
    type=click.Choice(list(results.COLUMNS)),
    help="The column of the page that is filled. For scripted, kcm is started with "
    "--nodes-programs.",
)
@click.option(
    "--kubeconfig",
    type=click.Path(exists=True, path_type=Path),
    help="The cluster. Without it, kcm is started with five simulated nodes, or with those of "
    "--container-runtime-endpoint.",
)
@click.option(
    "--lanes",
    default=4,
    show_default=True,
    type=click.IntRange(min=1),
    help="How many specs run at once. Serial ones run alone at the end.",
)
@click.option("--timeout", default=600.0, show_default=True, help="Seconds for one spec.")
@click.option("--only", default="", metavar="REGEX", help="Run specs whose names match.")
@click.option(
    "--kubectl",
    default="kubectl",
    show_default=True,
    metavar="PROGRAM",
    help="The kubectl that specs of sig-cli run, of the version of the suite.",
)
@click.option(
    "--container-runtime-endpoint",
    metavar="unix://PATH",
    help="Start kcm with nodes of this container runtime instead of simulated ones: for the column "
    "containers. Needs root, and the suite's images in the runtime or a registry.",
)
@click.option(
    "--kubelets",
    default=2,
    show_default=True,
    type=click.IntRange(min=1),
    help="How many of these nodes. They share the machine, so hostPorts and pods with the host's "
    "network can collide.",
)
@click.option(
    "--beside",
    multiple=True,
    type=click.Path(exists=True, path_type=Path, resolve_path=True),
    help="A program that is run beside these nodes, with KUBECONFIG, as kube-proxy and name "
    "servers are.",
)
@click.option("--skip", default="", metavar="REGEX", help="Leave specs out whose names match.")
@click.option("--missing", is_flag=True, help="Run specs that have not passed in the results.")
@click.option(
    "--logs",
    default=".conformance",
    show_default=True,
    type=click.Path(path_type=Path),
    help="Folder for a log of each spec.",
)
def run(**given: Any) -> None:
    """Run specs, and write the page.

    \b
    Examples:
      python -m tools.conformance run --e2e-test ./e2e.test
      python -m tools.conformance run --e2e-test ./e2e.test --only 'sig-apps.*Job'
      python -m tools.conformance run --e2e-test ./e2e.test --column kubelet --kubeconfig F
      python -m tools.conformance run --e2e-test ./e2e.test --column containers
        --container-runtime-endpoint unix:///run/containerd/containerd.sock --beside ./proxy.sh
    """
    options = RunOptions(**given)
    if shutil.which(options.kubectl) is None:
        raise click.UsageError(f"{options.kubectl} is not on the PATH: --kubectl names another one")
    options.logs.mkdir(parents=True, exist_ok=True)
    with _cluster(options) as kubeconfig:
        program = options.program.resolve()
        suite = Suite(program, kubeconfig, options.logs, options.timeout, options.kubectl)
        chosen = [spec for spec in suite.list_specs() if options.chooses(spec)]
        commit = _ask("git", "-C", str(_ROOT), "rev-parse", "HEAD")
        version = _ask(str(program), "--version")
        running = run_specs(chosen, suite.run, options.lanes)
        for outcome in _show_progress(running, len(chosen), suite):  # kept if the run is ended
            results.write(options.column, commit, version, [outcome])
    _write_page()


@main.command("page")
def page_command() -> None:
    """Write the page from the results of the last runs."""
    _write_page()


def _write_page() -> None:
    _PAGE.write_text(page.render({column: results.read(column) for column in results.COLUMNS}))
    click.echo(f"wrote {_PAGE.relative_to(_ROOT)}")


def _cluster(options: RunOptions) -> AbstractContextManager[Path]:
    if options.kubeconfig is not None:
        return nullcontext(options.kubeconfig.resolve())
    if options.container_runtime_endpoint is None:
        return rig.start_simulated(options.logs, programs=options.column == "scripted")
    nodes = rig.ContainerNodes(
        options.container_runtime_endpoint, options.kubelets, options.kubectl, options.beside
    )
    return rig.start_containers(options.logs, nodes)


def _show_progress(outcomes: Iterator[Outcome], count: int, suite: Suite) -> Iterator[Outcome]:
    number = 0
    for outcome in outcomes:
        number += outcome.result != AGAIN
        log = "" if outcome.result == PASSED else f"  ({suite.log_of(outcome.spec)})"
        color = {PASSED: "green", FAILED: "red"}.get(outcome.result, "yellow")
        word = click.style(f"{outcome.result:6}", fg=color)
        click.echo(f"[{number:3}/{count}] {word} {outcome.seconds:6.1f} s  {outcome.spec}{log}")
        if outcome.result != AGAIN:
            yield outcome


def _ask(*command: str) -> str:
    done = subprocess.run(command, check=True, capture_output=True, text=True)
    return (done.stdout or done.stderr).strip().splitlines()[-1]


if __name__ == "__main__":
    main()
