"""The Job controller is in `controller`; the other modules are its pure helpers."""

from kcm.controllers.job.controller import JobController, JobOptions

__all__ = ["JobController", "JobOptions"]
