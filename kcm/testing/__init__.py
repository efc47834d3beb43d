"""Support for tests of controllers: builders, fake views, a world of objects, and a fake clock.

`builders` builds objects with sensible defaults. `views.FakeView` is what a controller sees, and
`world.World` a store in memory that carries out plans, both without Redis: a test passes objects
in, and compares the plan that comes out. `clock.FakeClock` is stepped by the test, and `waiting`
waits for other threads and processes. See docs/writing-a-controller.md.
"""
