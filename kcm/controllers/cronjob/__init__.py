"""The CronJob controller: `controller` is its entry, `times` says when something is due."""

from kcm.controllers.cronjob.controller import CronJobController, CronJobOptions

__all__ = ["CronJobController", "CronJobOptions"]
