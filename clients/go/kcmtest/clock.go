package kcmtest

import (
	"net/http"
	"time"
)

// Rest is a moment at which nothing was left to do, and what happens next by itself.
type Rest struct {
	At      time.Time
	Pending []Pending
}

// Pending is something that is going to happen by itself.
type Pending struct {
	When time.Time
	What string
}

// Clock is the time of a control plane. At first it goes on as the machine's.
type Clock struct{ cp *ControlPlane }

// Now returns the time.
func (c Clock) Now() time.Time {
	c.cp.t.Helper()
	var clock struct{ Now time.Time }
	c.cp.must(http.MethodGet, "clock", nil, &clock)
	return clock.Now
}

// Freeze makes the time stand still.
func (c Clock) Freeze() {
	c.cp.t.Helper()
	c.cp.must(http.MethodPost, "clock/freeze", nil, nil)
}

// Run makes the time go on from where it stands.
func (c Clock) Run() {
	c.cp.t.Helper()
	c.cp.must(http.MethodPost, "clock/run", nil, nil)
}

// Advance moves the time forward. What becomes due on the way happens at its time.
func (c Clock) Advance(duration time.Duration) Rest {
	c.cp.t.Helper()
	var rest Rest
	c.cp.must(http.MethodPost, "clock/advance", map[string]any{"duration": duration.Seconds()}, &rest)
	return rest
}

// To moves the time forward to a time.
func (c Clock) To(moment time.Time) Rest {
	c.cp.t.Helper()
	var rest Rest
	values := map[string]any{"time": moment.UTC().Format(time.RFC3339Nano)}
	c.cp.must(http.MethodPost, "clock/to", values, &rest)
	return rest
}
