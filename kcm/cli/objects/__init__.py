"""Commands that work with objects: apply, get and delete."""
