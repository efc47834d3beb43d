"""The API types as pydantic models, and the scheme of all kinds. No I/O.

Import what you need from the modules.
"""
