"""How the informers of a process read, by what the process is for."""

from __future__ import annotations

from kcm.informers.options import InformerOptions

# Seconds between the reads of a worker that watches another API server, unless a sync waits.
WORKERS_REST = 0.05


def choose_options(
    kind: str, *, remote: bool, embedded: bool, resync: float = 0.0
) -> InformerOptions:
    """Returns the options of a `worker` or a `manager`.

    A manager has to dispatch changes, so it reads them at once. A worker reads them when it has a
    key to sync. Of another API server, whose watches have connections of their own, it takes what
    has come once in a while. Inside another program, nothing has a thread.

    A manager whose handlers may come long after the informers have started, as it has to lead
    first, has them resynced no more often than every `resync` seconds.
    """
    if embedded:
        return InformerOptions(pull=not remote, threaded=False, detect_mutations=True)
    if kind != "worker":
        return InformerOptions(default_resync=resync)
    if remote:
        return InformerOptions(merge_seconds=WORKERS_REST, read_interval=WORKERS_REST)
    return InformerOptions(pull=True)
