// Copyright 2026 The cluster-api-provider-kubexm Authors.
// SPDX-License-Identifier: Apache-2.0

package kubexm

import (
	"fmt"
	"go/ast"
	"go/parser"
	"go/token"
	"os"
	"path/filepath"
	"strconv"
	"strings"
	"testing"

	"github.com/mensylisir/cluster-api-provider-kubexm/pkg/spec/config"
	"github.com/mensylisir/cluster-api-provider-kubexm/test/hosts"
)

// TestWhatSuitesDeclareIsUnderstood reads each specification in the suites as the program does: a suite runs seldom, and what it
// declares is to be found stale by the change that makes it so.
func TestWhatSuitesDeclareIsUnderstood(t *testing.T) {
	dir := t.TempDir()
	c := Cluster{Name: "declared", Dir: dir}
	for i := range 9 {
		c.Hosts = append(c.Hosts, &hosts.Host{
			Name: fmt.Sprintf("host-%d", i+1), Address: fmt.Sprintf("10.0.0.1%d", i+1), Address6: fmt.Sprintf("fd85:ee78::1%d", i+1),
			User: hosts.Ops, KeyPath: filepath.Join(dir, "client.key"),
		})
	}
	for _, name := range []string{"ca.crt", "client.crt", "client.key"} {
		if err := os.WriteFile(filepath.Join(dir, name), []byte("anything"), 0o600); err != nil {
			t.Fatal(err)
		}
	}
	all := declared(t)
	if len(all) < 25 {
		t.Fatalf("only %d specifications were found", len(all))
	}
	for at, spec := range all {
		c.IPv6First = strings.Contains(spec, `podCIDRs: ["fd`)
		c.Internal = nil
		if strings.Contains(spec, "hostCIDRs:") {
			c.Internal = func(h *hosts.Host) string { return "198.51.100." + strings.TrimPrefix(h.Name, "host-") }
		}
		for _, by := range []string{"kubeadm", "kubexm"} {
			c.Jump, c.Agent = nil, by == "kubexm" // both ways to log in are understood everywhere
			if strings.Contains(at, "jump_test.go") {
				c.Jump = c.Hosts[8]
			}
			if err := c.Write(filled(spec, by, dir)); err != nil {
				t.Fatal(err)
			}
			if _, warnings, err := config.Load(c.Config(), nil); err != nil || len(warnings) > 0 {
				t.Errorf("%s, by %s: %v %v\n%s", at, by, err, warnings, filled(spec, by, dir))
			}
		}
	}
}

// filled has values where a suite puts them in later.
func filled(spec, by, dir string) string {
	spec = strings.NewReplacer(
		"type: "+inserted, "type: "+by, "{"+inserted, "{type: "+by, "version: "+inserted, "version: v1.36.3", inserted, "",
		"type: %s", "type: "+by, "version: %s", "version: v1.36.3", "http://%s", "http://10.0.0.1:5000",
		"$BY", by, "$VERSION", "v1.36.3", "$VXLAN", "Always", "$MASTERS", "$1, $4, $5", "$WORKERS", "$2, $3", "$WORKER", "$6",
		"$ETCD", "https://10.0.0.1:2379", "$LB", "10.0.0.1", "$DIR", dir, "$ROLES", "master: [$1, $4, $5], worker: [$6]",
	).Replace(spec)
	if !strings.Contains(spec, "kubernetes:") {
		spec += "  kubernetes: {version: v1.36.3}\n"
	}
	return spec
}

// declared are the specifications in the suites' files, by where they are.
func declared(t *testing.T) map[string]string {
	t.Helper()
	paths, err := filepath.Glob(filepath.Join("..", "*", "*.go"))
	if err != nil {
		t.Fatal(err)
	}
	all, set := map[string]string{}, token.NewFileSet()
	for _, path := range paths {
		syntax, err := parser.ParseFile(set, path, nil, parser.SkipObjectResolution)
		if err != nil {
			t.Fatal(err)
		}
		ast.Inspect(syntax, func(n ast.Node) bool {
			e, ok := n.(ast.Expr)
			if !ok {
				return true
			}
			text := textOf(e)
			if !strings.HasPrefix(text, "  roleGroups:") || !strings.Contains(text, "\n") {
				return true
			}
			all[set.Position(n.Pos()).String()] = text
			return false // not the parts of a whole
		})
	}
	return all
}

// inserted stands for what a suite computes.
const inserted = "<computed>"

// textOf is a text of literals and of what is put between them.
func textOf(e ast.Expr) string {
	switch e := e.(type) {
	case *ast.BasicLit:
		text, err := strconv.Unquote(e.Value)
		if err == nil && e.Kind == token.STRING {
			return text
		}
	case *ast.BinaryExpr:
		if e.Op == token.ADD {
			return textOf(e.X) + textOf(e.Y)
		}
	}
	return inserted
}
