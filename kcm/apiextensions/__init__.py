"""Custom kinds: from CustomResourceDefinitions to resources of the scheme.

`kinds` makes the resources. Pruning, defaulting, validating and rules act on objects. Everything
here is pure.
"""
