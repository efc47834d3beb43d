"""How the informers of a process read."""

from __future__ import annotations

import pytest

from kcm.manager.context.informing import WORKERS_REST, choose_options


@pytest.mark.parametrize("remote", [False, True])
def test_a_manager_reads_changes_at_once(remote: bool) -> None:
    options = choose_options("manager", remote=remote, embedded=False)
    assert (options.pull, options.threaded, options.merge_seconds) == (False, True, 0.002)


def test_a_worker_reads_when_it_has_a_key_to_sync() -> None:
    assert choose_options("worker", remote=False, embedded=False).pull


def test_a_worker_takes_the_changes_of_another_server_once_in_a_while() -> None:
    """They are pushed, so a sync that waits for them has them without a request."""
    options = choose_options("worker", remote=True, embedded=False)
    assert not options.pull
    assert (options.merge_seconds, options.read_interval) == (WORKERS_REST, WORKERS_REST)


@pytest.mark.parametrize(("remote", "pull"), [(False, True), (True, False)])
def test_inside_another_program_nothing_has_a_thread(remote: bool, pull: bool) -> None:
    options = choose_options("worker", remote=remote, embedded=True)
    assert (options.threaded, options.pull, options.detect_mutations) == (False, pull, True)
