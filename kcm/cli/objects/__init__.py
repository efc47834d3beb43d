"""Commands that work with objects: apply, create, get, describe, delete and scale."""
