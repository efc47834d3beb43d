"""The Job controller: `controller` is its entry, the rest its pure helpers."""

from kcm.controllers.job.controller import JobController, JobOptions

__all__ = ["JobController", "JobOptions"]
