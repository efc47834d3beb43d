"""What a manager logs when it starts."""

from __future__ import annotations

from structlog.testing import capture_logs

from kcm.manager.run import log_flags
from kcm.options.manager import ManagerOptions


def test_given_flags_are_logged_in_one_line_and_all_of_them_for_debugging() -> None:
    options = ManagerOptions.load({"min-resync-period": "90m"}, {})
    with capture_logs() as lines:
        log_flags(options)
    (given,) = [line for line in lines if line["log_level"] == "info"]
    assert given["flags"] == '--min-resync-period="1h30m0s"'
    every = {line["event"]: line["source"] for line in lines if line["log_level"] == "debug"}
    assert every['FLAG: --min-resync-period="1h30m0s"'] == "flag"
    assert every['FLAG: --concurrent-replicaset-syncs="5"'] == "default"
