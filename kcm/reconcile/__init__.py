"""The contract between controllers and kcm, and the parts that run controllers.

Authors of controllers need `contract` and `plan` only. `runner` takes keys from the work queue,
`caches` gives each sync its view, `executor` carries plans out, and `consistency` makes each sync
see what earlier syncs wrote.
"""
