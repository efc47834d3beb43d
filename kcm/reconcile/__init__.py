"""The contract between controllers and kcm, and the machine that runs controllers.

`contract` and `plan` are what the author of a controller needs. `runner` takes keys from the work
queue, `caches` gives each sync its view, `executor` carries plans out, and `consistency` makes each
sync see what earlier syncs wrote.
"""
