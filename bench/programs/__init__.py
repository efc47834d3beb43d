"""What measurements run in processes of its own, or beside kcm: apps, controllers, handlers."""
