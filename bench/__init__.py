"""Measures kcm, each time as a ratio to raw Redis or raw Celery of the same run.

`python -m bench --help` explains; `docs/performance.md` says how to read the table.
"""
