"""Flower's configuration: `celery -A workers flower --conf=.../flowerconfig.py`.

Flower executes this file and takes the names that are options of its own. By default it requires a
login, changes nothing (read-only) and listens on loopback. The environment variables
KCM_FLOWER_ADDRESS, KCM_FLOWER_PORT, KCM_FLOWER_USER, KCM_FLOWER_PASSWORD and
KCM_FLOWER_READ_ONLY=false change that. Without a password in the environment, one is generated into
the file `flower-password` of the state folder, which only its owner can read.
"""

from __future__ import annotations

import os

from kcm.interpreter import end_quickly
from workers.flowersettings import (
    follow_master,
    login,
    refuse_non_ascii_logins,
    require_login_for_metrics,
    require_read_only,
    run_no_scripts,
)
from workers.flowersettings import format_task as format_task  # noqa: PLC0414 - an option's name

address = os.environ.get("KCM_FLOWER_ADDRESS", "127.0.0.1")
port = int(os.environ.get("KCM_FLOWER_PORT", "5555"))
basic_auth = [login()]
refuse_non_ascii_logins()
read_only = os.environ.get("KCM_FLOWER_READ_ONLY", "true").lower() not in {"false", "0", "no"}
if read_only:
    require_read_only()
require_login_for_metrics()
run_no_scripts()
follow_master()
persistent = False  # the store and /metrics have the data; Flower only shows it
enable_events = False  # workers run with -E, so Flower need not enable their events
tasks_columns = "name,args,state,runtime,exception,received,worker"
max_tasks = 20_000
logging = "error"  # not the list of tasks at its start, nor which worker has not replied yet
purge_offline_workers = 300  # seconds
inspect_timeout = 1000.0  # milliseconds
end_quickly()  # without a search for cycles in 20,000 tasks
