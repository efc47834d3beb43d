"""`kcm nodes stages`: explains what can be scripted, and checks stages files."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path

import click

from kcm.simulated import scripts, stages


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
            f"{file} is right: {len(parsed.pods)} entries for pods, {len(parsed.nodes)} for nodes"
        )


def explanation() -> Iterator[str]:
    """Returns the explanation of annotations, fields and outcomes."""
    yield "A pod does what its annotations say, else what the stages file says, else the usual."
    yield ""
    yield "Annotations of pods (with .CONTAINER behind them, for that one container):"
    fields = list(stages.POD_FIELDS)
    for name, field in zip(scripts.POD_ANNOTATIONS, fields, strict=True):
        text = f"  {scripts.PREFIX}{name}"
        yield f"{text:<46}{_POD_HELP[name]}; in the file: {field}"
    yield ""
    yield "Outcomes:"
    yield from (f"  {name:<18}{text}" for name, text in scripts.OUTCOMES.items())
    yield ""
    yield "Annotations of nodes:"
    yield f"  {scripts.PREFIX}state: STATE,STATE..."
    yield f"  {scripts.PREFIX}clock-skew: -90s      how far the node's clock is ahead"
    yield "In the file, `after` and `lasts` say when the states begin behind the node's start."
    yield ""
    yield "States:"
    yield from (f"  {name:<18}{text}" for name, text in scripts.NODE_STATES.items())
    yield ""
    yield "Amounts over time are like 100m, or 100m for 1m, 2 for 30s, 500m. Where the last has a"
    yield "duration, too, they begin again. Behind the word shared, they are what all ready pods"
    yield "of one controller have together, each the same share."
    yield "Durations are like 500ms, 10s, 1m30s, or never."
    yield "kcm nodes stages --example prints a file."


_POD_HELP = {
    "outcome": "how a run ends, see below",
    "start-after": "pulling and creating takes so long",
    "ready-after": "so long after its start it is ready",
    "run-for": "so long it runs before the outcome",
    "stop-after": "so long it takes to end after SIGTERM; never: it is killed",
    "jitter": "up to so much is added to the three before stop-after",
    "exit-codes": "1,1,0: of one attempt after the other, the last repeats",
    "exit-codes-by-index": "2=1,0; 5=137: for single indexes of a Job",
    "message": "of the Event of a failed pull, or of the end",
    "cpu": "in use, as an amount over time, see below",
    "memory": "the same",
    "metrics": "hits=20; depth=1 for 1m, 5: the pod's own metrics",
}
