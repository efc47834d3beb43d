"""Custom kinds: turns CustomResourceDefinitions into resources of the scheme.

`kinds` builds the resources. Pruning, defaulting, validation and CEL rules apply to custom objects.
"""
