package kcmtest

import (
	"net/http"
	"time"
)

// Write is one write: what was changed, when, and by whom.
type Write struct {
	Time                        time.Time
	ResourceVersion             string
	Verb, Event                 string
	Kind, Resource, Subresource string
	Namespace, Name             string
	Author, Agent, Key          string
	Changes                     []string
}

// History returns the writes since the test began. The query has kind, name and namespace, each of
// which may be left out.
func (cp *ControlPlane) History(query Args) []Write {
	cp.t.Helper()
	asked := Args{"since": cp.since}
	for name, value := range query {
		asked[name] = value
	}
	var history struct{ Writes []Write }
	cp.must(http.MethodGet, "history", asked, &history)
	return history.Writes
}

// Explanation says why an object is as it is.
type Explanation struct {
	Exists     bool
	State      string
	Waits      []string
	Conditions []string
	Events     []string
	Syncs      []string
	Refused    []string
	Text       string
}

func (e Explanation) String() string { return e.Text }

// Explain explains an object, like "deployment/web".
func (cp *ControlPlane) Explain(object, namespace string) Explanation {
	cp.t.Helper()
	var explanation Explanation
	cp.must(http.MethodGet, "explain", Args{"object": object, "namespace": namespace}, &explanation)
	return explanation
}
