// Copyright 2026 The cluster-api-provider-kubexm Authors.
// SPDX-License-Identifier: Apache-2.0

//go:build hosts

package door_test

import (
	"fmt"
	"os"
	"testing"
	"time"

	"github.com/mensylisir/cluster-api-provider-kubexm/bootstrap/door"
	"github.com/mensylisir/cluster-api-provider-kubexm/pkg/host"
	"github.com/mensylisir/cluster-api-provider-kubexm/pkg/host/ssh"
	"github.com/mensylisir/cluster-api-provider-kubexm/pkg/secret"
	"github.com/mensylisir/cluster-api-provider-kubexm/test/hosts"
	"github.com/mensylisir/cluster-api-provider-kubexm/test/lab"
)

// TestDoorForCertificates opens a host for those who have a certificate of an authority, for one name and for now.
func TestDoorForCertificates(t *testing.T) {
	t.Parallel()
	pool := lab.Pool(t, hosts.Options{Name: fmt.Sprintf("doorcerts-%d", os.Getpid()), Count: 1})
	h := pool.Hosts[0]
	before, err := h.Snapshot(t.Context())
	if err != nil {
		t.Fatal(err)
	}
	private, other := newKey(t), newKey(t)
	login := func(by secret.Value, principal string, now time.Time) ssh.Auth {
		t.Helper()
		ca, err := ssh.NewUserCA(by)
		if err != nil {
			t.Fatal(err)
		}
		auth, err := ssh.NewLogin(ca, principal, time.Minute, now, "door test")
		if err != nil {
			t.Fatal(err)
		}
		return auth
	}
	v := visit(t, h, "sha256:10")
	if v.options.AuthorizedKey, err = ssh.AuthorizedKey(private, secret.Value{}); err != nil {
		t.Fatal(err)
	}
	v.options.Principal = "kubexm@prod"
	v.open("sh")
	opened := v.sh(state + "state")
	v.open("bash")
	if again := v.sh(state + "state"); again != opened {
		t.Errorf("run twice, it leaves\n%s\nwant\n%s", again, opened)
	}
	v.login = login(private, "kubexm@prod", time.Now())
	v.in(v.birth)
	for name, auth := range map[string]ssh.Auth{
		"for the user's name":       login(private, "kubexm", time.Now()),
		"of another authority":      login(other, "kubexm@prod", time.Now()),
		"that has ended":            login(private, "kubexm@prod", time.Now().Add(-time.Hour)),
		"none: the authority's key": {PrivateKeys: []secret.Value{private}},
	} {
		v.login = auth
		if _, err := v.dial(v.birth, host.KindAuth); host.KindOf(err) != host.KindAuth {
			t.Errorf("with a certificate %s: got %v", name, err)
		}
	}

	// For the user's own name, and for no other any more.
	v.options.Principal = v.options.User
	v.open("sh")
	v.login = login(private, v.options.User, time.Now())
	v.in(v.birth)
	v.login = login(private, "kubexm@prod", time.Now())
	v.refused(v.birth, host.KindAuth)

	// The same Machine lets in by a key instead, and the authority is forgotten.
	v.options.Principal = ""
	v.newLogin()
	v.open("sh")
	v.in(v.birth)
	byKey := v.login
	v.login = login(private, "kubexm@prod", time.Now())
	v.refused(v.birth, host.KindAuth)
	v.login = byKey
	v.as(v.birth, door.Close)
	v.clean(before)
}

func newKey(t *testing.T) secret.Value {
	t.Helper()
	private, err := ssh.NewUserKey("")
	if err != nil {
		t.Fatal(err)
	}
	return private
}
