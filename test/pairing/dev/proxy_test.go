// Copyright 2026 The cluster-api-provider-kubexm Authors.
// SPDX-License-Identifier: Apache-2.0

package dev

import (
	"io"
	"net/http"
	"net/http/httptest"
	"strings"
	"testing"
)

// TestChange has what comes through changed, and what does not.
func TestChange(t *testing.T) {
	for name, tc := range map[string]struct {
		method, path, body string
		has, hasNot        []string
		same               bool
	}{
		"a privileged container": {
			method: http.MethodPost, path: "/v1.41/containers/create",
			body:   `{"Image": "x", "HostConfig": {"Privileged": true, "Tmpfs": {"/tmp": "", "/run": ""}}}`,
			has:    []string{`"Privileged":false`, `"SYS_ADMIN"`, `"/tmp":"exec"`, `"/run":""`, `"of":"test"`, `"Image":"x"`, `"MaskedPaths":[]`},
			hasNot: []string{`"SYS_RESOURCE"`},
		},
		"one that is not": {
			method: http.MethodPost, path: "/containers/create", body: `{"HostConfig": {}}`,
			has: []string{`"of":"test"`}, hasNot: []string{"CapAdd", "Devices"},
		},
		"crictl": {
			method: http.MethodPost, path: "/v1.41/containers/abc/exec", body: `{"Cmd": ["crictl", "ps"], "Privileged": true}`,
			has: []string{`"Cmd":["true"]`}, hasNot: []string{"Privileged"},
		},
		"another command":  {method: http.MethodPost, path: "/v1.41/containers/abc/exec", body: `{"Cmd": ["crictl", "ps", "-a"]}`, has: []string{`"-a"`}},
		"another path":     {method: http.MethodPost, path: "/v1.41/containers/abc/start", body: `{ "Privileged": true}`, same: true},
		"what is asked":    {method: http.MethodGet, path: "/v1.41/containers/create", body: "", same: true},
		"something else's": {method: http.MethodPost, path: "/v1.41/images/create", body: "no JSON", same: true},
	} {
		t.Run(name, func(t *testing.T) {
			r := httptest.NewRequest(tc.method, tc.path, strings.NewReader(tc.body))
			p := &Proxy{Labels: map[string]string{"of": "test"}}
			if err := p.change(r); err != nil {
				t.Fatal(err)
			}
			got, err := io.ReadAll(r.Body)
			if err != nil {
				t.Fatal(err)
			}
			if tc.same && string(got) != tc.body {
				t.Errorf("it is %s", got)
			}
			for _, part := range tc.has {
				if !strings.Contains(string(got), part) {
					t.Errorf("%s is not in %s", part, got)
				}
			}
			for _, part := range tc.hasNot {
				if strings.Contains(string(got), part) {
					t.Errorf("%s is in %s", part, got)
				}
			}
			if !tc.same && (r.ContentLength != int64(len(got)) || r.Method != http.MethodPost) {
				t.Errorf("its length is said to be %d, and is %d", r.ContentLength, len(got))
			}
		})
	}
	if err := new(Proxy).change(httptest.NewRequest(http.MethodPost, "/containers/create", strings.NewReader("{"))); err == nil {
		t.Error("half a request came through")
	}
}
