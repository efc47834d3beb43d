package kcmtest

import (
	"bytes"
	"crypto/tls"
	"encoding/json"
	"net/http"
	"os"
	"path/filepath"
	"regexp"
	"strings"
	"testing"
	"time"
)

const report = `{"apiVersion": "batch/v1", "kind": "CronJob", "metadata": {"name": "report"}, "spec": {
  "schedule": "0 3 * * *", "jobTemplate": {"spec": {"template": {"spec": {
    "restartPolicy": "Never", "containers": [{"name": "main", "image": "busybox"}]}}}}}}`

// client speaks to the API server with the token of the kubeconfig. A project has client-go for it.
type client struct {
	t     *testing.T
	url   string
	token string
}

func newClient(t *testing.T, cp *ControlPlane) client {
	content, err := os.ReadFile(cp.Kubeconfig)
	if err != nil {
		t.Fatal(err)
	}
	token := regexp.MustCompile(`token: (\S+)`).FindStringSubmatch(string(content))
	if token == nil {
		t.Fatal("the kubeconfig has no token")
	}
	return client{t, cp.URL, token[1]}
}

func (c client) do(method, path, body string) (int, map[string]any) {
	c.t.Helper()
	request, err := http.NewRequest(method, c.url+path, bytes.NewBufferString(body))
	if err != nil {
		c.t.Fatal(err)
	}
	request.Header.Set("Authorization", "Bearer "+c.token)
	request.Header.Set("Content-Type", "application/json")
	request.Header.Set("User-Agent", "my-operator")
	transport := &http.Transport{TLSClientConfig: &tls.Config{InsecureSkipVerify: true}}
	defer transport.CloseIdleConnections()
	response, err := (&http.Client{Transport: transport}).Do(request)
	if err != nil {
		c.t.Fatal(err)
	}
	defer response.Body.Close()
	var answer map[string]any
	if err := json.NewDecoder(response.Body).Decode(&answer); err != nil {
		c.t.Fatal(err)
	}
	return response.StatusCode, answer
}

func TestANightPassesInASecond(t *testing.T) {
	cp := Start(t, Options{})
	client := newClient(t, cp)
	cp.Clock.Freeze()
	client.do("POST", "/apis/batch/v1/namespaces/default/cronjobs", report)
	before := cp.Clock.Now()
	rest := cp.Clock.Advance(24 * time.Hour)
	if moved := rest.At.Sub(before); moved < 24*time.Hour {
		t.Errorf("the clock moved by %v", moved)
	}
	_, jobs := client.do("GET", "/apis/batch/v1/namespaces/default/jobs", "")
	if count := len(jobs["items"].([]any)); count != 1 {
		t.Errorf("%d jobs ran in a day", count)
	}
	if len(cp.Settle().Pending) == 0 {
		t.Error("nothing is pending, though the job is to run every night")
	}
	cp.Node("node-1", "full")
	if text := cp.Explain("cronjob/report", "default").String(); !strings.Contains(text, "cronjob/report") {
		t.Error(text)
	}
}

func TestFaultsAndHistory(t *testing.T) {
	cp := Start(t, Options{Bare: true})
	client := newClient(t, cp)
	fault := cp.Faults.API(Args{"verb": "create", "resource": "configmaps", "error": 503, "times": 1, "for": "my-operator"})
	const path, body = "/api/v1/namespaces/default/configmaps", `{"metadata": {"name": "mine"}}`
	if code, _ := client.do("POST", path, body); code != 503 {
		t.Errorf("the fault answered %d", code)
	}
	if code, _ := client.do("POST", path, body); code != 201 {
		t.Errorf("the server answered %d", code)
	}
	if hits := fault.Hits(); hits != 1 {
		t.Errorf("%d hits", hits)
	}
	writes := cp.History(Args{"kind": "configmap", "name": "mine"})
	if len(writes) != 1 || writes[0].Event != "ADDED" || writes[0].Agent != "my-operator" {
		t.Errorf("%+v", writes)
	}
}

// failing is a test that has failed, and what it has logged.
type failing struct {
	testing.TB
	logged   []string
	cleanups []func()
}

func (f *failing) Failed() bool      { return true }
func (f *failing) Cleanup(f2 func()) { f.cleanups = append(f.cleanups, f2) }
func (f *failing) Log(args ...any)   { f.Logf("%v", args[0]) }
func (f *failing) Logf(format string, args ...any) {
	for _, one := range args {
		f.logged = append(f.logged, one.(string))
	}
}

func TestAFailedTestPrintsTheTimelineAndThePathOfThePage(t *testing.T) {
	server, err := New(Options{Bare: true, Reports: t.TempDir()})
	if err != nil {
		t.Fatal(err)
	}
	defer server.Stop()
	test := &failing{TB: t}
	client := newClient(t, server.For(test))
	client.do("POST", "/api/v1/namespaces/default/configmaps", `{"metadata": {"name": "seen"}}`)
	for _, cleanup := range test.cleanups {
		cleanup()
	}
	logged := strings.Join(test.logged, "\n")
	if !strings.Contains(logged, "configmaps/seen") {
		t.Errorf("no timeline: %s", logged)
	}
	pages, _ := filepath.Glob(filepath.Join(server.reports, "*.html"))
	if len(pages) != 1 || !strings.Contains(logged, pages[0]) {
		t.Errorf("no page: %s", logged)
	}
}

func TestAProgramThatIsMissingIsTold(t *testing.T) {
	if _, err := New(Options{Command: []string{"no-such-kcm"}}); err == nil || !strings.Contains(err.Error(), "pip install kcm") {
		t.Error(err)
	}
	if _, err := New(Options{Flags: []string{"--no-such-flag"}}); err == nil || !strings.Contains(err.Error(), "no-such-flag") {
		t.Error(err)
	}
}
