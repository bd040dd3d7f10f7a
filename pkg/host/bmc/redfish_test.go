// Copyright 2026 The cluster-api-provider-kubexm Authors.
// SPDX-License-Identifier: Apache-2.0

package bmc_test

import (
	"crypto/sha256"
	"encoding/hex"
	"encoding/json"
	"encoding/pem"
	"errors"
	"io"
	"net/http"
	"net/http/httptest"
	"slices"
	"strings"
	"testing"

	"github.com/mensylisir/cluster-api-provider-kubexm/pkg/host/bmc"
	"github.com/mensylisir/cluster-api-provider-kubexm/pkg/secret"
)

// controller is a Redfish service of one or more machines.
type controller struct {
	*httptest.Server
	password string
	power    string
	systems  []string
	// allowed are what Reset takes, nil if that is not said; target is where, if not where it is usual.
	allowed []string
	target  string
	// refuses is what a reset is answered with, garbage what everything is.
	refuses, garbage string
	// silent is whether a reset is made and not answered.
	silent bool
	resets []string
}

func start(t *testing.T, change func(*controller)) *controller {
	t.Helper()
	c := &controller{password: "s3cret", power: "On", systems: []string{"1"}, allowed: []string{"On", "ForceOff", "ForceRestart"}}
	c.Server = httptest.NewTLSServer(c)
	t.Cleanup(c.Close)
	change(c)
	return c
}

func (c *controller) ServeHTTP(w http.ResponseWriter, r *http.Request) {
	say := func(v any) {
		if c.garbage != "" {
			_, _ = io.WriteString(w, c.garbage)
			return
		}
		_ = json.NewEncoder(w).Encode(v)
	}
	if user, password, _ := r.BasicAuth(); r.URL.Path != "/redfish/v1/" && (user != "kubexm" || password != c.password) {
		w.WriteHeader(http.StatusUnauthorized)
		return
	}
	system, isReset := strings.CutSuffix(strings.TrimPrefix(r.URL.Path, "/redfish/v1/Systems/"), "/Actions/ComputerSystem.Reset")
	switch {
	case r.URL.Path == "/redfish/v1/":
		say(map[string]any{"Systems": map[string]string{"@odata.id": "/redfish/v1/Systems"}})
	case r.URL.Path == "/redfish/v1/Systems":
		members := []map[string]string{}
		for _, s := range c.systems {
			members = append(members, map[string]string{"@odata.id": "/redfish/v1/Systems/" + s})
		}
		say(map[string]any{"Members": members})
	case !slices.Contains(c.systems, system):
		w.WriteHeader(http.StatusNotFound)
	case !isReset:
		target := c.target
		if target == "" {
			target = r.URL.Path + "/Actions/ComputerSystem.Reset"
		}
		reset := map[string]any{"target": target}
		if c.allowed != nil {
			reset["ResetType@Redfish.AllowableValues"] = c.allowed
		}
		say(map[string]any{"Id": system, "PowerState": c.power, "Actions": map[string]any{"#ComputerSystem.Reset": reset}})
	case r.Method != http.MethodPost || r.Header.Get("Content-Type") != "application/json":
		w.WriteHeader(http.StatusMethodNotAllowed)
	case c.refuses != "":
		w.WriteHeader(http.StatusConflict)
		_, _ = io.WriteString(w, c.refuses)
	default:
		var asked struct{ ResetType string }
		if err := json.NewDecoder(r.Body).Decode(&asked); err != nil {
			w.WriteHeader(http.StatusBadRequest)
			return
		}
		c.resets = append(c.resets, system+" "+asked.ResetType)
		if c.silent {
			panic(http.ErrAbortHandler) // ends the connection
		}
		w.WriteHeader(http.StatusNoContent)
	}
}

func (c *controller) fingerprint() string {
	sum := sha256.Sum256(c.Certificate().Raw)
	return hex.EncodeToString(sum[:])
}

func TestReset(t *testing.T) {
	elsewhere := httptest.NewTLSServer(http.HandlerFunc(func(_ http.ResponseWriter, r *http.Request) {
		t.Errorf("another server is asked for %s, with %q", r.URL, r.Header.Get("Authorization"))
	}))
	defer elsewhere.Close()
	for name, test := range map[string]struct {
		change func(*controller)
		with   func(*bmc.Controller)
		resets []string
		err    string
	}{
		"on":                      {resets: []string{"1 ForceRestart"}},
		"off":                     {change: func(c *controller) { c.power = "Off" }, resets: []string{"1 On"}},
		"it does not say how":     {change: func(c *controller) { c.allowed = nil }, resets: []string{"1 ForceRestart"}},
		"by a power cycle":        {change: func(c *controller) { c.allowed = []string{"On", "PowerCycle"} }, resets: []string{"1 PowerCycle"}},
		"in no way that is known": {change: func(c *controller) { c.allowed = []string{"Nmi"} }, err: `of a machine that is On it takes ["Nmi"]`},
		"one of two": {change: func(c *controller) {
			c.systems = []string{"a", "b"}
		}, with: func(b *bmc.Controller) { b.SystemID = "b" }, resets: []string{"b ForceRestart"}},
		"of two, without saying": {change: func(c *controller) { c.systems = []string{"a", "b"} }, err: `it has the systems ["a" "b"]: say which is meant`},
		"another than there is":  {with: func(b *bmc.Controller) { b.SystemID = "2" }, err: `it has the systems ["1"], and not "2"`},
		"none":                   {change: func(c *controller) { c.systems = nil }, err: "it has the systems []"},
		"another password":       {change: func(c *controller) { c.password = "other" }, err: "401 Unauthorized: the user kubexm may not log in"},
		"it refuses": {change: func(c *controller) {
			c.refuses = `{"error":{"message":"General","@Message.ExtendedInfo":[{"Message":"firmware\nis updated"}]}}`
		}, err: `409 Conflict: "firmware is updated"`},
		"it does not answer": {change: func(c *controller) { c.silent = true }, resets: []string{"1 ForceRestart"},
			err: "the machine may have been reset, which was not answered"},
		"it refuses, and says html": {change: func(c *controller) { c.refuses = "<html>" }, err: "409 Conflict"},
		"it says nonsense":          {change: func(c *controller) { c.garbage = "<html>" }, err: "its answer is no JSON of Redfish"},
		"it floods":                 {change: func(c *controller) { c.garbage = strings.Repeat("[", 2<<20) }, err: "its answer is no JSON of Redfish"},
		"it refers elsewhere":       {change: func(c *controller) { c.target = elsewhere.URL + "/x" }, err: "which is not its own"},
		"its certificate is another": {with: func(b *bmc.Controller) { b.Fingerprint = strings.Repeat("00", 32) },
			err: "its certificate has the fingerprint"},
		"its certificate is nobody's": {with: func(b *bmc.Controller) { b.Fingerprint = "" }, err: "certificate signed by unknown authority"},
		"a fingerprint that is none":  {with: func(b *bmc.Controller) { b.Fingerprint = "00" }, err: "is not a SHA-256"},
		"authorities that are none":   {with: func(b *bmc.Controller) { b.Authorities = []byte("x") }, err: "no certificate in PEM"},
		"without TLS": {with: func(b *bmc.Controller) {
			b.Address = strings.Replace(b.Address, "https", "http", 1)
		}, err: "want a URL such as"},
		"it does not answer at the address": {change: func(c *controller) { c.Close() }, err: "connection refused"},
	} {
		t.Run(name, func(t *testing.T) {
			if test.change == nil {
				test.change = func(*controller) {}
			}
			c := start(t, test.change)
			b := &bmc.Controller{Address: c.URL, User: "kubexm", Password: secret.New("s3cret"), Fingerprint: c.fingerprint()}
			if test.with != nil {
				test.with(b)
			}
			how, err := b.Reset(t.Context())
			if made := len(test.resets) > 0; made != (how != "") || made != (err == nil || errors.Is(err, bmc.ErrUnanswered)) {
				t.Errorf("it was reset by %q with the error %v, want %q", how, err, test.resets)
			}
			if !slices.Equal(c.resets, test.resets) {
				t.Errorf("it was asked for %q, want %q", c.resets, test.resets)
			}
			if (err == nil) != (test.err == "") || err != nil && !strings.Contains(err.Error(), test.err) {
				t.Errorf("error %v, want %q", err, test.err)
			}
			if err != nil && (strings.Contains(err.Error(), "s3cret") || strings.ContainsAny(err.Error(), "\n\x1b")) {
				t.Errorf("the error is not fit to be shown: %q", err)
			}
		})
	}
}

func TestResetByAuthority(t *testing.T) {
	c := start(t, func(*controller) {})
	authority := pem.EncodeToMemory(&pem.Block{Type: "CERTIFICATE", Bytes: c.Certificate().Raw})
	for _, b := range []*bmc.Controller{{Authorities: authority}, {Fingerprint: strings.ToUpper(colons(c.fingerprint()))}} {
		b.Address, b.User, b.Password = c.URL, "kubexm", secret.New("s3cret")
		if how, err := b.Reset(t.Context()); how != bmc.ForceRestart || err != nil {
			t.Errorf("%s, %v", how, err)
		}
	}
	if len(c.resets) != 2 {
		t.Errorf("%d resets, want 2", len(c.resets))
	}
}

// colons writes a fingerprint as openssl does.
func colons(fingerprint string) string {
	var parts []string
	for i := 0; i < len(fingerprint); i += 2 {
		parts = append(parts, fingerprint[i:i+2])
	}
	return strings.Join(parts, ":")
}
