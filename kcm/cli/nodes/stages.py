"""The command `kcm nodes stages`, which explains scripts of pods and nodes, and checks files."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path

import click

from kcm.simulation.scripting import scripts, stages


@click.command("stages")
@click.argument("file", required=False, type=click.Path(path_type=Path))
@click.option("--example", is_flag=True, help="Print a stages file to start from.")
def show_stages(file: Path | None, example: bool) -> None:
    """Explain how simulated pods and nodes are scripted; check a stages file.

    \b
    Examples:
      kcm nodes stages
      kcm nodes stages --example > stages.yaml
      kcm nodes stages stages.yaml
      kcm nodes --count 5 --stages stages.yaml
    """
    if example:
        click.echo(stages.EXAMPLE, nl=False)
    elif file is None:
        click.echo("\n".join(explanation()))
    else:
        parsed = stages.load(file)
        click.echo(
            f"{file} is valid: {len(parsed.pods)} entries for pods, {len(parsed.nodes)} for nodes"
        )


def explanation() -> Iterator[str]:
    """Yields the lines that explain annotations, fields, outcomes and states."""
    yield "A pod follows its annotations, otherwise the stages file, otherwise the defaults."
    yield ""
    yield "Annotations of pods (with the suffix .CONTAINER for one container):"
    fields = list(stages.POD_FIELDS)
    for name, field in zip(scripts.POD_ANNOTATIONS, fields, strict=True):
        text = f"  {scripts.PREFIX}{name}"
        yield f"{text:<46}{_POD_HELP[name]}; in the file: {field}"
    for name, text in _INCIDENT_HELP.items():
        yield f"{f'  {scripts.PREFIX}{name}':<46}{text}"
    yield ""
    yield "Outcomes:"
    yield from (f"  {name:<18}{text}" for name, text in scripts.OUTCOMES.items())
    yield ""
    yield "Annotations of nodes:"
    yield f"  {scripts.PREFIX}state: STATE,STATE..."
    yield f"  {scripts.PREFIX}clock-skew: -90s      how far the node's clock is ahead"
    yield "In the file, `after` and `lasts` say how long after the node's start a state begins, and"
    yield "how long it lasts."
    yield ""
    yield "States:"
    yield from (f"  {name:<18}{text}" for name, text in scripts.NODE_STATES.items())
    yield ""
    yield "Amounts over time are like 100m, or 100m for 1m, 2 for 30s, 500m. If the last one has a"
    yield "duration, too, they are repeated. After the word shared, they are the total of all ready"
    yield "pods of one controller, which have equal shares."
    yield "Durations are like 500ms, 10s, 1m30s, or never."
    yield "kcm nodes stages --example prints a file."


_INCIDENT_HELP = {
    "exit": "2026-01-01T00:00:00Z 137 OOMKilled: what runs then exits so",
    "ready": "true or false: what the readiness probe says from now on",
}
_POD_HELP = {
    "outcome": "how a run ends, see below",
    "start-after": "the duration of pulling and creating",
    "ready-after": "the time from its start until it is ready",
    "run-for": "the duration of a run until its outcome",
    "stop-after": "the time from SIGTERM until it stops; never: it is killed",
    "jitter": "the most that is added at random to the three before stop-after",
    "exit-codes": "1,1,0: those of successive attempts; the last one is repeated",
    "exit-codes-by-index": "2=1,0; 5=137: those of single indexes of a Job",
    "message": "the message of a failed pull, or of the termination",
    "cpu": "the CPU usage, as amounts over time, see below",
    "memory": "the memory usage, as amounts over time",
    "metrics": "hits=20; depth=1 for 1m, 5: the pod's own metrics",
}
