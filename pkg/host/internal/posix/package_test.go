// Copyright 2026 The cluster-api-provider-kubexm Authors.
// SPDX-License-Identifier: Apache-2.0

package posix

import (
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strings"
	"testing"
)

// rpmHost is a host of which rpm and dnf are played: $HERE/installed has a line "NAME TRANSACTION" for each package.
type rpmHost struct {
	t   *testing.T
	dir string
}

var rpmTools = map[string]string{
	"rpm": `case "$1 $2" in
"-qa --qf") case $3 in *INSTALLTID*) cat "$HERE/installed" ;; *) cut -d ' ' -f 1 "$HERE/installed" ;; esac ;;
"-q "*) grep -q "^$3 " "$HERE/installed" ;;
esac`,
	// Each package comes with a library, in a transaction of $HERE/transaction.
	"dnf": `while [ "$1" != install ] && [ "$1" != remove ]; do shift; done
verb=$1
shift
for name; do
	case $verb in
	remove) sed -i "/^$name /d" "$HERE/installed" ;;
	install) grep -q "^$name " "$HERE/installed" || sed "s/.*/lib$name &\n$name &/" "$HERE/transaction" >>"$HERE/installed" ;;
	esac
done
[ ! -e "$HERE/fails" ]`,
}

func newRPMHost(t *testing.T) rpmHost {
	t.Helper()
	h := rpmHost{t, t.TempDir()}
	for _, name := range []string{"undo", "run", "bin"} {
		if err := os.Mkdir(h.path(name), 0o700); err != nil {
			t.Fatal(err)
		}
	}
	// No apt-get and no dpkg-query: of this machine's programs those alone that the library needs.
	for _, name := range []string{"awk", "cat", "comm", "cp", "cut", "grep", "mv", "rm", "sed", "sort", "sync", "timeout"} {
		found, err := exec.LookPath(name)
		if err != nil {
			t.Fatal(err)
		}
		if err := os.Symlink(found, h.path("bin/"+name)); err != nil {
			t.Fatal(err)
		}
	}
	for name, text := range rpmTools {
		h.put("bin/"+name, "#!/bin/sh\n"+text+"\n")
	}
	h.put("installed", "bash 1\ncurl 1\n")
	h.put("transaction", "20\n")
	return h
}

func (h rpmHost) path(name string) string { return filepath.Join(h.dir, name) }

func (h rpmHost) put(name, content string) {
	h.t.Helper()
	if err := os.WriteFile(h.path(name), []byte(content), 0o700); err != nil {
		h.t.Fatal(err)
	}
}

// run runs lines of the library, with what it has of a session.
func (h rpmHost) run(lines string) error {
	h.t.Helper()
	const session = `
PATH=$HERE/bin S=$HERE T=$HERE/run N=mark Q=1 R="run node task" I=0 deadline=0 KX_CUT=
`
	library := compact(coreLib) + compact(sessionLib) + compact(changeLib) + compact(packageLib) + compact(undoLib)
	cmd := exec.CommandContext(h.t.Context(), "/bin/sh", "-c", library+session+lines)
	cmd.Env = []string{"HERE=" + h.dir}
	out, err := cmd.CombinedOutput()
	h.t.Logf("%s: %v\n%s", lines, err, out)
	return err
}

func (h rpmHost) must(lines string) {
	h.t.Helper()
	if err := h.run(lines); err != nil {
		h.t.Fatal(err)
	}
}

// administrator installs packages beside us.
func (h rpmHost) administrator(lines string) {
	h.t.Helper()
	h.put("installed", h.installed()+lines)
}

func (h rpmHost) installed() string {
	h.t.Helper()
	content, err := os.ReadFile(h.path("installed"))
	if err != nil {
		h.t.Fatal(err)
	}
	return string(content)
}

func (h rpmHost) want(names ...string) {
	h.t.Helper()
	var have []string
	for line := range strings.Lines(h.installed()) {
		have = append(have, strings.Fields(line)[0])
	}
	if !slices.Equal(have, names) {
		h.t.Errorf("there are %q, want %q", have, names)
	}
}

// TestPackagesOfACutAct: an act that was cut has not said what it has brought. Its undo removes that, and nothing that an administrator has
// installed since.
func TestPackagesOfACutAct(t *testing.T) {
	cut := func(h rpmHost, after string) {
		h.t.Helper()
		if err := h.run("c_install() { " + after + "; kill -KILL $$; }\nW=0; c_package 'jq+tree' '' jq tree"); err == nil {
			h.t.Fatal("it was not cut")
		}
	}
	t.Run("undone", func(t *testing.T) {
		h := newRPMHost(t)
		cut(h, "c_dnf install jq tree")
		h.want("bash", "curl", "libjq", "jq", "libtree", "tree")
		h.administrator("nginx 30\nnginx-core 30\n")
		h.must("u_package 1 'jq tree'")
		h.want("bash", "curl", "nginx", "nginx-core")
	})
	t.Run("done again", func(t *testing.T) {
		h := newRPMHost(t)
		cut(h, "c_dnf install jq") // it was at the second
		h.administrator("nginx 30\n")
		h.put("transaction", "40\n")
		h.must("W=1; c_package 'jq+tree' '' jq tree")
		h.want("bash", "curl", "libjq", "jq", "nginx", "libtree", "tree")
		h.administrator("vim 50\n")
		h.must("u_package 1 'jq tree'")
		h.want("bash", "curl", "nginx", "vim")
	})
	t.Run("before anything came", func(t *testing.T) {
		h := newRPMHost(t)
		cut(h, ":")
		h.administrator("nginx 30\n")
		h.must("u_package 1 'jq tree'")
		h.want("bash", "curl", "nginx")
	})
}

// TestPackagesOfAnActThatFails: what came before it failed goes with what came when it was done again, and nothing that came in between.
func TestPackagesOfAnActThatFails(t *testing.T) {
	h := newRPMHost(t)
	h.put("fails", "")
	if err := h.run("c_install() { c_dnf install jq; }\nW=0; c_package 'jq+tree' '' jq tree"); err == nil {
		t.Fatal("it did not fail")
	}
	if err := os.Remove(h.path("fails")); err != nil {
		t.Fatal(err)
	}
	h.administrator("nginx 30\n")
	h.must("W=1; c_package 'jq+tree' '' jq tree")
	h.must("u_package 1 'jq tree'")
	h.want("bash", "curl", "nginx")
}
