// Package kcmtest runs a control plane of kcm for a test, and holds its clock.
//
// A control plane is a process of `kcm test-env --serve`, which ends with the test's process,
// however that ends. Any client reaches it by ControlPlane.Kubeconfig. The package needs the
// standard library only, so a project keeps its own versions of client-go and everything else.
package kcmtest

import (
	"bufio"
	"bytes"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"net/http"
	"net/url"
	"os"
	"os/exec"
	"path/filepath"
	"strconv"
	"strings"
	"testing"
	"time"
)

const (
	apiVersion  = "v1"
	stopTimeout = 20 * time.Second
)

// Options says what a control plane consists of. The zero value has every controller, a scheduler
// and a simulated node.
type Options struct {
	// Bare is a cluster as in envtest: no controllers and nodes but those named below, no
	// StorageClass and no service accounts.
	Bare bool
	// Controllers are names as `kcm manager --controllers` takes them.
	Controllers []string
	// Nodes is the number of simulated nodes, nil for the default.
	Nodes *int
	// CRDs is a file or folder of CustomResourceDefinitions that are established first.
	CRDs string
	// Seed makes names, uids and keys repeatable, nil for random ones.
	Seed *int
	// Flags are further flags of `kcm test-env`, such as --flag=--node-monitor-grace-period=10s.
	Flags []string
	// Command is the program and its first arguments, by default KCM or "kcm".
	Command []string
	// Reports is the folder for the pages of failed tests, by default KCM_REPORT, or kcm-reports
	// in the folder for temporary files.
	Reports string
}

func (o Options) arguments() []string {
	arguments := []string{"test-env", "--serve"}
	if o.Bare {
		arguments = append(arguments, "--bare")
	}
	if o.Controllers != nil {
		arguments = append(arguments, "--controllers="+strings.Join(o.Controllers, ","))
	}
	if o.Nodes != nil {
		arguments = append(arguments, "--nodes="+strconv.Itoa(*o.Nodes))
	}
	if o.CRDs != "" {
		arguments = append(arguments, "--crds="+o.CRDs)
	}
	if o.Seed != nil {
		arguments = append(arguments, "--seed="+strconv.Itoa(*o.Seed))
	}
	return append(arguments, o.Flags...)
}

func (o Options) command() []string {
	if o.Command != nil {
		return o.Command
	}
	if program := os.Getenv("KCM"); program != "" {
		return []string{program}
	}
	return []string{"kcm"}
}

func (o Options) reports() string {
	if o.Reports != "" {
		return o.Reports
	}
	if folder := os.Getenv("KCM_REPORT"); folder != "" {
		return folder
	}
	return filepath.Join(os.TempDir(), "kcm-reports")
}

// Server is a control plane that runs, for one test or for all of a package.
type Server struct {
	// Kubeconfig is the path of the administrator's kubeconfig.
	Kubeconfig string
	// URL is that of the API server.
	URL string

	api, token, reports string
	process             *exec.Cmd
	input               io.Closer
	output              bytes.Buffer
	client              http.Client
}

// New starts a control plane. Stop ends it.
func New(options Options) (*Server, error) {
	command := append(append([]string{}, options.command()...), options.arguments()...)
	s := &Server{reports: options.reports(), process: exec.Command(command[0], command[1:]...)}
	s.process.Stderr = &s.output
	input, err := s.process.StdinPipe()
	if err != nil {
		return nil, err
	}
	s.input = input
	output, err := s.process.StdoutPipe()
	if err != nil {
		return nil, err
	}
	if err := s.process.Start(); err != nil {
		return nil, fmt.Errorf("%w; kcm is installed by `pip install kcm`", err)
	}
	line, err := bufio.NewReader(output).ReadBytes('\n')
	if err != nil {
		_ = s.process.Wait()
		return nil, fmt.Errorf("%s: %s", strings.Join(command, " "), strings.TrimSpace(s.output.String()))
	}
	var places map[string]string
	if err := json.Unmarshal(line, &places); err != nil {
		s.Stop()
		return nil, fmt.Errorf("%s wrote %q: %w", command[0], line, err)
	}
	s.Kubeconfig, s.URL = places["KUBECONFIG"], places["server"]
	s.api, s.token = places["KCM_TEST_API"], places["KCM_TEST_TOKEN"]
	return s, nil
}

// Stop ends the control plane, and waits until nothing of it is left.
func (s *Server) Stop() {
	_ = s.input.Close()
	timer := time.AfterFunc(stopTimeout, func() { _ = s.process.Process.Kill() })
	defer timer.Stop()
	_ = s.process.Wait()
}

// request sends a request to the HTTP API, and reads the answer into `answer` if it is not nil.
func (s *Server) request(method, path string, values map[string]any, answer any) error {
	address := s.api + "/" + apiVersion + "/" + path
	var body io.Reader
	if method == http.MethodGet {
		query := url.Values{}
		for name, value := range values {
			query.Set(name, fmt.Sprint(value))
		}
		address += "?" + query.Encode()
	} else if values != nil {
		encoded, err := json.Marshal(values)
		if err != nil {
			return err
		}
		body = bytes.NewReader(encoded)
	}
	request, err := http.NewRequest(method, address, body)
	if err != nil {
		return err
	}
	request.Header.Set("Authorization", "Bearer "+s.token)
	response, err := s.client.Do(request)
	if err != nil {
		return err
	}
	defer response.Body.Close()
	if response.StatusCode != http.StatusOK {
		var refusal struct {
			Error string `json:"error"`
		}
		_ = json.NewDecoder(response.Body).Decode(&refusal)
		return errors.New(refusal.Error)
	}
	if answer == nil {
		return nil
	}
	return json.NewDecoder(response.Body).Decode(answer)
}

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
	var told struct{ Text string }
	if err := cp.request(http.MethodGet, "timeline", map[string]any{"since": cp.since}, &told); err != nil {
		cp.t.Logf("there is no timeline: %v", err)
		return
	}
	cp.t.Logf("timeline of the control plane\n%s", told.Text)
	page := map[string]any{"folder": cp.reports, "test": cp.t.Name(), "since": cp.since}
	if err := cp.request(http.MethodPost, "pages", page, &told); err == nil {
		cp.t.Log(told.Text)
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

// Settle waits until the control plane has nothing left to do now.
func (cp *ControlPlane) Settle() Rest {
	cp.t.Helper()
	var rest Rest
	cp.must(http.MethodPost, "settle", nil, &rest)
	return rest
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
	var told struct{ Hits int }
	f.cp.must(http.MethodGet, "faults/"+strconv.Itoa(f.ID), nil, &told)
	return told.Hits
}

// Remove ends it, and returns how often it has struck.
func (f *Fault) Remove() int {
	f.cp.t.Helper()
	var told struct{ Hits int }
	f.cp.must(http.MethodDelete, "faults/"+strconv.Itoa(f.ID), nil, &told)
	return told.Hits
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
