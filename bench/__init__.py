"""Measures kcm, as ratios to raw Redis or raw Celery measured in the same run.

`python -m bench --help` shows the options; `docs/performance.md` explains the table.
"""
