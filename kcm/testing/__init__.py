"""Support for tests of controllers: builders, a view, a small cluster and a clock.

`builders` makes objects with sensible defaults. `views.FakeView` is what a controller sees, and
`world.World` a store in memory that carries plans out, both without Redis: a test puts objects in
and compares the plan that comes out. `clock.FakeClock` is stepped by hand, and `waiting` waits for
other threads and processes. See docs/writing-a-controller.md.
"""
