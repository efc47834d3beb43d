"""Custom kinds: parsed definitions, the base class of the models of custom objects, and
objects of which only the metadata is there.
"""
