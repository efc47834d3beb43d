package kcmtest

import (
	"net/http"
	"strconv"
)

// Faults has things fail, by the HTTP API's arguments (docs/testing-api.md).
type Faults struct{ cp *ControlPlane }

// Args are the arguments of a fault, such as {"verb": "update", "error": 409, "times": 3}.
type Args = map[string]any

// API has requests fail or delays them.
func (f Faults) API(args Args) *Fault { f.cp.t.Helper(); return f.add("api", args) }

// Watches ends open watches.
func (f Faults) Watches(args Args) *Fault { f.cp.t.Helper(); return f.add("watches", args) }

// StaleLists answers reads at resourceVersion 0 from the past.
func (f Faults) StaleLists(args Args) *Fault { f.cp.t.Helper(); return f.add("stale_lists", args) }

// Webhook has the calls of a webhook fail.
func (f Faults) Webhook(args Args) *Fault { f.cp.t.Helper(); return f.add("webhook", args) }

// Clear removes all faults.
func (f Faults) Clear() {
	f.cp.t.Helper()
	f.cp.must(http.MethodDelete, "faults", nil, nil)
}

func (f Faults) add(kind string, args Args) *Fault {
	f.cp.t.Helper()
	fault := &Fault{cp: f.cp}
	f.cp.must(http.MethodPost, "faults/"+kind, args, fault)
	return fault
}

// Fault is something that fails, until it is removed or used up.
type Fault struct {
	ID   int
	cp   *ControlPlane
	Text string `json:"fault"`
}

// Hits returns how often it has struck.
func (f *Fault) Hits() int {
	f.cp.t.Helper()
	var answer struct{ Hits int }
	f.cp.must(http.MethodGet, "faults/"+strconv.Itoa(f.ID), nil, &answer)
	return answer.Hits
}

// Remove ends it, and returns how often it has struck.
func (f *Fault) Remove() int {
	f.cp.t.Helper()
	var answer struct{ Hits int }
	f.cp.must(http.MethodDelete, "faults/"+strconv.Itoa(f.ID), nil, &answer)
	return answer.Hits
}
