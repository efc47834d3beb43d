"""The CronJob controller is in `controller`; `times` computes when Jobs are due."""

from kcm.controllers.cronjob.controller import CronJobController, CronJobOptions

__all__ = ["CronJobController", "CronJobOptions"]
