"""The CronJob controller: `controller` is its entry, and `times` says when a Job is due."""

from kcm.controllers.cronjob.controller import CronJobController, CronJobOptions

__all__ = ["CronJobController", "CronJobOptions"]
