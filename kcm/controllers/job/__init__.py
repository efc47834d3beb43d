"""The Job controller: `controller` is its entry, and the rest are its pure helpers."""

from kcm.controllers.job.controller import JobController, JobOptions

__all__ = ["JobController", "JobOptions"]
