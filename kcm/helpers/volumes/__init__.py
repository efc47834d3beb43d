"""Rules about claims, volumes and attachments that controllers, scheduler and nodes share."""
