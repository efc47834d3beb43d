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
	// URL is the URL of the API server.
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
	var addresses map[string]string
	if err := json.Unmarshal(line, &addresses); err != nil {
		s.Stop()
		return nil, fmt.Errorf("%s wrote %q: %w", command[0], line, err)
	}
	s.Kubeconfig, s.URL = addresses["KUBECONFIG"], addresses["server"]
	s.api, s.token = addresses["KCM_TEST_API"], addresses["KCM_TEST_TOKEN"]
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
