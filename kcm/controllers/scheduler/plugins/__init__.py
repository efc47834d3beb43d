"""The filters and scores of the scheduler, named after upstream's plugins."""
