"""Safe access to files and folders that containers may change, whatever links they put there."""
