"""Runs specs in lanes: several at once, and those that must be alone at the end."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from concurrent.futures import ThreadPoolExecutor, as_completed
from dataclasses import replace

from tools.conformance.suite import AGAIN, PASSED, Outcome, runs_alone

Run = Callable[[str], Outcome]


def run_specs(specs: Sequence[str], run: Run, lanes: int) -> Iterator[Outcome]:
    """Yields an outcome for each spec as it comes. One that has not passed beside others is AGAIN,
    is run once more alone, and comes a second time.
    """
    together = [spec for spec in specs if not runs_alone(spec)]
    again: list[str] = []
    pool = ThreadPoolExecutor(lanes)
    try:
        for done in as_completed([pool.submit(run, spec) for spec in together]):
            outcome = done.result()
            if outcome.result != PASSED and lanes > 1:
                again.append(outcome.spec)
                outcome = replace(outcome, result=AGAIN)
            yield outcome
    finally:
        pool.shutdown(cancel_futures=True)  # Ctrl-C begins no further specs
    for spec in [*(spec for spec in specs if runs_alone(spec)), *sorted(again)]:
        yield run(spec)
