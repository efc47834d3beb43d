"""What differs by kind: defaults, validation, columns, and what objects take of quotas.

Each folder has one table by type. All functions are pure. What differs when objects are created,
updated and deleted needs the store, and is in `kcm.store.strategies`.
"""
