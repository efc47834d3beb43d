package kcmtest

import (
	"net/http"
	"net/url"
	"testing"
)

// ControlPlane is a control plane in the hands of one test. Its methods fail the test if the control
// plane refuses what they ask for, so they are for the test's own goroutine.
type ControlPlane struct {
	*Server
	// Clock is its time.
	Clock Clock
	// Faults has requests, watches and webhooks fail.
	Faults Faults

	t     testing.TB
	since string
}

// Start starts a control plane for a test, and stops it at the test's end. If the test fails, its
// log has the timeline of the control plane, and the path of the page that shows it.
func Start(t testing.TB, options Options) *ControlPlane {
	t.Helper()
	server, err := New(options)
	if err != nil {
		t.Fatalf("the control plane did not start: %v", err)
	}
	t.Cleanup(server.Stop)
	return server.For(t)
}

// For returns the control plane in the hands of a test, which begins now. Faults that the test makes
// are removed at its end.
func (s *Server) For(t testing.TB) *ControlPlane {
	t.Helper()
	cp := &ControlPlane{Server: s, t: t}
	cp.Clock, cp.Faults = Clock{cp}, Faults{cp}
	cp.since = cp.Note(t.Name() + " begins")
	t.Cleanup(func() {
		if t.Failed() {
			cp.report()
		}
		_ = s.request(http.MethodDelete, "faults", nil, nil)
	})
	return cp
}

func (cp *ControlPlane) report() {
	var answer struct{ Text string }
	if err := cp.request(http.MethodGet, "timeline", map[string]any{"since": cp.since}, &answer); err != nil {
		cp.t.Logf("there is no timeline: %v", err)
		return
	}
	cp.t.Logf("timeline of the control plane\n%s", answer.Text)
	page := map[string]any{"folder": cp.reports, "test": cp.t.Name(), "since": cp.since}
	if err := cp.request(http.MethodPost, "pages", page, &answer); err == nil {
		cp.t.Log(answer.Text)
	}
}

func (cp *ControlPlane) must(method, path string, values map[string]any, answer any) {
	cp.t.Helper()
	if err := cp.request(method, path, values, answer); err != nil {
		cp.t.Fatalf("%s: %v", path, err)
	}
}

// Note puts a line into the timeline, and returns the resourceVersion of the last write before it.
func (cp *ControlPlane) Note(text string) string {
	cp.t.Helper()
	var mark struct{ After string }
	cp.must(http.MethodPost, "notes", map[string]any{"text": text}, &mark)
	return mark.After
}

// Settle waits until the control plane has nothing left to do now.
func (cp *ControlPlane) Settle() Rest {
	cp.t.Helper()
	var rest Rest
	cp.must(http.MethodPost, "settle", nil, &rest)
	return rest
}

// Node does something to a simulated node: stop, start, partition, full, memory_pressure,
// pid_pressure, not_ready or heal.
func (cp *ControlPlane) Node(name, action string) {
	cp.t.Helper()
	cp.must(http.MethodPost, "nodes/"+url.PathEscape(name)+"/"+action, nil, nil)
}

// Pod does something to a pod on a simulated node: crash, oom, ready, not_ready, log or heal.
func (cp *ControlPlane) Pod(namespace, name, action string, args Args) {
	cp.t.Helper()
	path := "pods/" + url.PathEscape(namespace) + "/" + url.PathEscape(name) + "/" + action
	cp.must(http.MethodPost, path, args, nil)
}
