// Copyright 2026 The cluster-api-provider-kubexm Authors.
// SPDX-License-Identifier: Apache-2.0

//go:build hosts

package door_test

import (
	"fmt"
	"os"
	"os/exec"
	"strings"
	"testing"

	"github.com/mensylisir/cluster-api-provider-kubexm/bootstrap/door"
	"github.com/mensylisir/cluster-api-provider-kubexm/pkg/host"
	"github.com/mensylisir/cluster-api-provider-kubexm/pkg/host/fake"
	"github.com/mensylisir/cluster-api-provider-kubexm/test/hosts"
	"github.com/mensylisir/cluster-api-provider-kubexm/test/lab"
)

// closingScript is what Close runs on a host.
func closingScript(t *testing.T) string {
	t.Helper()
	script, m := "", fake.New("w1")
	m.OnCommand = func(_ *fake.Machine, c host.Command) host.Result {
		script = c.Argv[len(c.Argv)-1]
		return host.Result{}
	}
	if err := door.Close(t.Context(), m.Connect()); err != nil {
		t.Fatal(err)
	}
	return script
}

// TestClosingIsCut ends what closes the door after every third of its commands: whoever is refused then, or sees another key, is let in by
// nothing any more, and another run leaves the host as it was.
func TestClosingIsCut(t *testing.T) {
	t.Parallel()
	pool := lab.Pool(t, hosts.Options{Name: fmt.Sprintf("doorclosing-%d", os.Getpid()), Count: 1})
	h := pool.Hosts[0]
	before, err := h.Snapshot(t.Context())
	if err != nil {
		t.Fatal(err)
	}
	v, script := visit(t, h, "sha256:09"), closingScript(t)
	// $gone has the same first line as what scripts share; what begins with the second is ours.
	variables, own, found := strings.Cut(script, "\nSUDO=")
	if !found {
		t.Fatalf("it does not begin as scripts do:\n%s", script)
	}
	variables += "\n"
	own = "SUDO=" + own
	cuts, refusals, places := 0, 0, 0
	for at, char := range own {
		cut := variables + own[:at+1] + "exit 1\n" + own[at+1:]
		if char != '\n' || exec.Command("sh", "-n", "-c", cut).Run() != nil {
			continue
		}
		if places++; places%3 != 0 {
			continue
		}
		// A user that is about to go is not the next one's.
		v.until("! systemctl -q is-active kubexm-door-close")
		v.open("bash")
		v.in(v.birth)
		if v.run("sh", cut) == "" {
			continue // nothing comes there
		}
		cuts++
		line := own[strings.LastIndexByte(own[:at], '\n')+1 : at]
		kind := v.once()
		refused := kind == host.KindAuth || kind == host.KindHostKey
		lets := v.sh(`grep -qxF -- "$1" /home/kubexm/.ssh/authorized_keys 2>/dev/null && echo yes || :`, v.options.AuthorizedKey) == "yes"
		if refused && lets {
			t.Errorf("cut after %q, we are refused (%s), and others are let in", line, kind)
		}
		if refused {
			refusals++
		}
		if failed := v.run("sh", script); failed != "" {
			t.Errorf("cut after %q, it cannot be closed: %s", line, failed)
		}
	}
	if t.Logf("cut %d times, refused %d times", cuts, refusals); cuts < 8 || refusals < 3 || refusals == cuts {
		t.Errorf("it was cut %d times, and refused us %d times", cuts, refusals)
	}
	v.clean(before)
}

// once logs in and out, and says why not.
func (v *visitor) once() host.Kind {
	v.Helper()
	h, err := v.dial(v.birth, "")
	if err != nil {
		return host.KindOf(err)
	}
	if err := h.Close(); err != nil {
		v.Error(err)
	}
	return ""
}
