// Copyright 2026 The cluster-api-provider-kubexm Authors.
// SPDX-License-Identifier: Apache-2.0

package dev

import (
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"net"
	"net/http"
	"net/http/httputil"
	"net/url"
	"regexp"
	"slices"
	"strconv"
	"time"

	"github.com/mensylisir/cluster-api-provider-kubexm/test/hosts"
)

// engine is the socket of the container engine.
const engine = "/var/run/docker.sock"

// Proxy stands before the container engine. What comes through differs in this alone:
//
//   - containers and commands in them get every capability that there is by name, and devices, where they ask to be privileged; containers
//     have the labels given here
//   - programs may be run from /tmp, as on a machine
//   - "crictl ps", by which the provider finds out whether an image of kind's has begun to work, is answered as if it had
type Proxy struct {
	// Labels are those of containers.
	Labels map[string]string

	server *http.Server
	ended  chan error
}

var (
	createsContainer = regexp.MustCompile(`^(/v[0-9.]+)?/containers/create$`)
	createsExec      = regexp.MustCompile(`^(/v[0-9.]+)?/containers/[^/]+/exec$`)
)

// Listen serves on a socket until Close.
func (p *Proxy) Listen(ctx context.Context, socket string) error {
	listener, err := new(net.ListenConfig).Listen(ctx, "unix", socket)
	if err != nil {
		return err
	}
	forward := &httputil.ReverseProxy{
		Rewrite: func(r *httputil.ProxyRequest) { r.SetURL(&url.URL{Scheme: "http", Host: "engine"}) },
		Transport: &http.Transport{DialContext: func(ctx context.Context, _, _ string) (net.Conn, error) {
			return new(net.Dialer).DialContext(ctx, "unix", engine)
		}},
		FlushInterval: -1,
	}
	p.server = &http.Server{ReadHeaderTimeout: time.Minute, Handler: http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		if err := p.change(r); err != nil {
			http.Error(w, fmt.Sprintf(`{"message": %q}`, err), http.StatusBadRequest)
			return
		}
		forward.ServeHTTP(w, r)
	})}
	p.ended = make(chan error, 1)
	go func() { p.ended <- p.server.Serve(listener) }()
	return nil
}

// Close ends the proxy with all that goes through it.
func (p *Proxy) Close() error {
	err := p.server.Close()
	if ended := <-p.ended; !errors.Is(ended, http.ErrServerClosed) {
		return errors.Join(err, ended)
	}
	return err
}

// change makes of a request the one that the engine gets.
func (p *Proxy) change(r *http.Request) error {
	var change func(map[string]any)
	switch {
	case r.Method == http.MethodPost && createsContainer.MatchString(r.URL.Path):
		change = p.changeContainer
	case r.Method == http.MethodPost && createsExec.MatchString(r.URL.Path):
		change = changeExec
	default:
		return nil
	}
	body, err := io.ReadAll(r.Body)
	if err != nil {
		return err
	}
	var asked map[string]any
	if err := json.Unmarshal(body, &asked); err != nil {
		return err
	}
	change(asked)
	if body, err = json.Marshal(asked); err != nil {
		return err
	}
	r.Body, r.ContentLength = io.NopCloser(bytes.NewReader(body)), int64(len(body))
	r.Header.Set("Content-Length", strconv.Itoa(len(body)))
	return nil
}

func (p *Proxy) changeContainer(asked map[string]any) {
	labels, _ := asked["Labels"].(map[string]any)
	if labels == nil {
		labels = map[string]any{}
	}
	for k, v := range p.Labels {
		labels[k] = v
	}
	asked["Labels"] = labels
	host, _ := asked["HostConfig"].(map[string]any)
	if privileged, _ := host["Privileged"].(bool); !privileged {
		return
	}
	host["Privileged"] = false
	host["CapAdd"] = hosts.Capabilities()
	// The command line's systempaths=unconfined is these two, empty.
	host["MaskedPaths"], host["ReadonlyPaths"] = []string{}, []string{}
	host["DeviceCgroupRules"] = []string{"a *:* rwm"}
	host["CgroupnsMode"] = "private"
	host["Devices"] = []map[string]string{
		{"PathOnHost": "/dev/kmsg", "PathInContainer": "/dev/kmsg", "CgroupPermissions": "rwm"},
		{"PathOnHost": "/dev/fuse", "PathInContainer": "/dev/fuse", "CgroupPermissions": "rwm"},
	}
	if tmpfs, _ := host["Tmpfs"].(map[string]any); tmpfs != nil {
		tmpfs["/tmp"] = "exec"
	}
}

func changeExec(asked map[string]any) {
	// Without it, a command has what its container has.
	delete(asked, "Privileged")
	command, _ := asked["Cmd"].([]any)
	if slices.Equal(command, []any{"crictl", "ps"}) {
		asked["Cmd"] = []any{"true"}
	}
}
