// Copyright 2026 The cluster-api-provider-kubexm Authors.
// SPDX-License-Identifier: Apache-2.0

package architecture

import (
	"go/ast"
	"go/token"
	"path"
	"regexp"
	"slices"
	"strconv"
	"strings"
	"testing"

	"github.com/mensylisir/cluster-api-provider-kubexm/pkg/os/family"
	"github.com/mensylisir/cluster-api-provider-kubexm/pkg/os/tables"
)

// genericKinds are the types of pkg/step that are steps, and its functions that make some.
func genericKinds(all []*file) map[string]bool {
	kinds := map[string]bool{}
	for _, f := range all {
		for _, declaration := range f.syntax.Decls {
			function, ok := declaration.(*ast.FuncDecl)
			if ok && f.dir == "pkg/step" && function.Recv != nil && function.Name.Name == "Meta" {
				kinds[strings.TrimPrefix(kindOf(function.Recv.List[0].Type), "*")] = true
			}
		}
	}
	makers := map[string]bool{}
	for _, f := range all {
		for _, declaration := range f.syntax.Decls {
			function, ok := declaration.(*ast.FuncDecl)
			if !ok || f.dir != "pkg/step" || function.Recv != nil || function.Type.Results == nil {
				continue
			}
			for _, result := range function.Type.Results.List {
				made := strings.TrimLeft(kindOf(result.Type), "[]*")
				makers[function.Name.Name] = makers[function.Name.Name] || made == "Step" || kinds[made]
			}
		}
	}
	for name, makes := range makers {
		kinds[name] = kinds[name] || makes
	}
	return kinds
}

// uses are the places where a file uses identifiers of a package of this repository, by identifier.
func uses(f *file, dir string) map[string]ast.Node {
	spec, imported := f.imports()["./"+dir]
	if !imported {
		return nil
	}
	name := path.Base(dir)
	if spec.Name != nil {
		name = spec.Name.Name
	}
	used := map[string]ast.Node{}
	ast.Inspect(f.syntax, func(node ast.Node) bool {
		if selector, ok := node.(*ast.SelectorExpr); ok {
			if of, ok := selector.X.(*ast.Ident); ok && of.Name == name {
				used[selector.Sel.Name] = node
			}
		}
		return true
	})
	return used
}

// Generic steps are for components, and for the packages below pkg/step, which make dedicated steps of them, and tasks are made of
// these. What every step is, and the data that steps take, is for all.
func TestGenericStepsAreForDedicatedOnes(t *testing.T) {
	all := files(t)
	generic := genericKinds(all)
	if len(generic) < 10 || !generic["File"] || !generic["Command"] {
		t.Fatalf("the generic kinds of pkg/step were not found: %v", generic)
	}
	for _, f := range all {
		// Plans are printed and read, and engines run, whatever the step; what is tested and measured is as generic as can be.
		if within(f.dir, "pkg/step/...", "pkg/component/...", "pkg/plan/...", "pkg/engine/...", "pkg/kube/...", "test/...") || f.isTest() {
			continue
		}
		for name, node := range uses(f, "pkg/step") {
			if generic[name] {
				t.Errorf("%s uses the generic step.%s: make a dedicated step of it, below pkg/step", f.at(node), name)
			}
		}
	}
}

// The engine runs whatever the step. It knows one kind, since that is a part of how it runs: a savepoint.
func TestEngineKnowsNoKindOfStep(t *testing.T) {
	all := files(t)
	generic := genericKinds(all)
	for _, f := range all {
		if f.dir != "pkg/engine" || f.isTest() {
			continue
		}
		for name, node := range uses(f, "pkg/step") {
			if generic[name] && !strings.HasPrefix(name, "Savepoint") {
				t.Errorf("%s knows step.%s: have the step say by its contract what the engine must know of it", f.at(node), name)
			}
		}
	}
}

// A component is its own folder's business: its siblings do not know it, and others ask its slot. Only the tables name it.
func TestComponentsAreAskedByTheirSlot(t *testing.T) {
	const all, tables = "pkg/component", "pkg/component/tables"
	named := 0
	for _, f := range files(t) {
		for name, spec := range f.imports() {
			imported, ours := strings.CutPrefix(name, "./")
			switch {
			case !ours || path.Dir(imported) != all || imported == tables:
			case f.dir == tables:
				named++
			case f.dir != imported && !f.isTest() && !within(f.dir, "test/..."):
				t.Errorf("%s knows the component %s: ask what fills its slot (component.Slots)", f.at(spec), path.Base(imported))
			}
		}
	}
	if named == 0 {
		t.Fatal("no table names a component")
	}
}

// choices are the enumerations by which a cluster's specification chooses components.
var choices = []string{
	"EtcdType", "KubernetesType", "NetworkPlugin", "ContainerRuntimeType", "LoadBalancerType", "LoadBalancerProxy", "DNSType", "ProxyMode",
}

// What fills a slot is chosen by its table. The names by which a cluster's specification chooses are those of the tables.
func TestNobodyAsksForAComponentByName(t *testing.T) {
	names, chosen := map[string]string{}, map[string]bool{}
	for _, f := range files(t) {
		for _, declaration := range f.syntax.Decls {
			general, ok := declaration.(*ast.GenDecl)
			if !ok || f.dir != "pkg/spec" {
				continue
			}
			for _, s := range general.Specs {
				if value, ok := s.(*ast.ValueSpec); ok && value.Type != nil && slices.Contains(choices, kindOf(value.Type)) {
					names[value.Names[0].Name], chosen[kindOf(value.Type)] = kindOf(value.Type), true
				}
			}
		}
	}
	if len(chosen) != len(choices) {
		t.Fatalf("pkg/spec has names of components for %v alone", chosen)
	}
	for _, f := range files(t) {
		// Settings are read and validated where they are written down, and tests and benches write some.
		if within(f.dir, "pkg/component/tables", "pkg/spec/...", "test/...") || f.isTest() {
			continue
		}
		modes := f.dir == "pkg/component/kubeproxy" // kube-proxy is one component, which tells its own modes apart
		for name, node := range uses(f, "pkg/spec") {
			if kind := names[name]; kind != "" && (!modes || kind != "ProxyMode") {
				t.Errorf("%s asks for spec.%s: ask what fills the slot (component.Slots)", f.at(node), name)
			}
		}
		for _, node := range comparedTypes(f) {
			if !modes {
				t.Errorf("%s compares what a cluster's specification chooses: ask what fills the slot (component.Slots)", f.at(node))
			}
		}
	}
}

// In pkg/spec, what a cluster's specification may choose is named by the enumeration, which declares it, and by the tables, which have a
// line for each, and by nothing else. What config.yaml calls it is in pkg/spec/config.
func TestComponentsHaveALineInTheTablesOfTheSpecification(t *testing.T) {
	const tables = "pkg/spec/components.go"
	names, lines := map[string]bool{}, map[string]bool{}
	for _, f := range files(t) {
		for _, declaration := range f.syntax.Decls {
			general, ok := declaration.(*ast.GenDecl)
			if !ok || f.dir != "pkg/spec" || f.isTest() {
				continue
			}
			for _, s := range general.Specs {
				if value, ok := s.(*ast.ValueSpec); ok && value.Type != nil && slices.Contains(choices, kindOf(value.Type)) {
					names[value.Names[0].Name] = true
				}
			}
		}
	}
	for _, f := range files(t) {
		if f.dir != "pkg/spec" || f.isTest() {
			continue
		}
		ast.Inspect(f.syntax, func(node ast.Node) bool {
			switch n := node.(type) {
			case *ast.ValueSpec:
				return !names[n.Names[0].Name] // where it is declared
			case *ast.KeyValueExpr:
				if key, ok := n.Key.(*ast.Ident); ok && f.path == tables && names[key.Name] {
					lines[key.Name] = true
				}
			case *ast.Ident:
				if names[n.Name] && f.path != tables {
					t.Errorf("%s asks for %s: say in its line of %s what is so", f.at(n), n.Name, tables)
				}
			}
			return true
		})
	}
	for name := range names {
		// A proxy has no settings of its own.
		if !lines[name] && name != "LoadBalancerHAProxy" && name != "LoadBalancerNginx" {
			t.Errorf("%s has no line in %s", name, tables)
		}
	}
}

// comparedTypes are the places where a file compares the field by which a cluster's specification chooses a component with anything but
// nothing.
func comparedTypes(f *file) []ast.Node {
	chooses := regexp.MustCompile(`(^|\.)((Etcd|Kubernetes|ContainerRuntime|LoadBalancer|DNS)\.Type|Network\.Plugin|Proxy\.Mode)$`)
	isChoice := func(expression ast.Expr) bool {
		for {
			call, ok := expression.(*ast.CallExpr) // a conversion
			if !ok || len(call.Args) != 1 {
				return chooses.MatchString(kindOf(expression))
			}
			expression = call.Args[0]
		}
	}
	var found []ast.Node
	ast.Inspect(f.syntax, func(node ast.Node) bool {
		switch n := node.(type) {
		case *ast.BinaryExpr:
			literal, ok := n.Y.(*ast.BasicLit)
			nothing := ok && literal.Value == `""`
			if (n.Op == token.EQL || n.Op == token.NEQ) && !nothing && (isChoice(n.X) || isChoice(n.Y)) {
				found = append(found, n)
			}
		case *ast.SwitchStmt:
			if n.Tag != nil && isChoice(n.Tag) {
				found = append(found, n)
			}
		}
		return true
	})
	return found
}

// How an operating system says what it is, what only one family calls a package, and which command manages packages is known below pkg/os.
// What builds artifacts works on a Debian of its own, and a fake host has to be something.
func TestOperatingSystemsAreNamedInTheirFolder(t *testing.T) {
	known := map[string]bool{}
	for _, f := range tables.Families {
		for _, s := range f.Systems {
			known[s.ID] = true
			os := f.Of(s, s.Releases[0])
			for _, p := range family.Programs() {
				for _, name := range os.Software(p).Packages {
					known[name] = !slices.Contains(family.Programs(), family.Program(name)) || known[name]
				}
			}
		}
	}
	if !known["debian"] || !known["iptables-nft"] || known["haproxy"] {
		t.Fatalf("the names of operating systems and their packages were not found: %v", known)
	}
	manager := regexp.MustCompile(`\b(apt-get|apt|dnf|yum) (install|remove|purge)\b`)
	for _, f := range files(t) {
		if f.isTest() || !within(f.dir, "pkg/...", "bootstrap/...", "controlplane/...", "exp/...", "cmd/...") ||
			within(f.dir, "pkg/os/...", "pkg/artifact/...", "pkg/host/fake") {
			continue
		}
		ast.Inspect(f.syntax, func(node ast.Node) bool {
			literal, ok := node.(*ast.BasicLit)
			if !ok || literal.Kind != token.STRING {
				return true
			}
			text, err := strconv.Unquote(literal.Value)
			if err != nil {
				t.Fatal(err)
			}
			if known[text] || manager.MatchString(text) {
				t.Errorf("%s: %q is for a family of operating systems to say: ask component.Inputs.OS", f.at(literal), text)
			}
			return true
		})
	}
}

// What a host must be is computed in one place, for reconcilers and the command line. The library's users write targets themselves.
func TestTargetsAreMadeInOnePlace(t *testing.T) {
	made := 0
	for _, f := range files(t) {
		if f.isTest() || !within(f.dir, "bootstrap/...", "controlplane/...", "exp/...", "cmd/...", "internal/...") {
			continue
		}
		for name, spec := range f.imports() {
			if f.dir == "bootstrap/target" && within(name, "sigs.k8s.io/controller-runtime/...", "k8s.io/client-go/...", "context", "time", "os", "net/...") {
				t.Errorf("%s imports %s: a target is a pure function of objects", f.at(spec), name)
			}
		}
		ast.Inspect(f.syntax, func(node ast.Node) bool {
			literal, ok := node.(*ast.CompositeLit)
			if !ok || len(literal.Elts) == 0 {
				return true
			}
			of, ok := literal.Type.(*ast.SelectorExpr)
			if !ok || of.Sel.Name != "Target" || kindOf(of.X) != "spec" {
				return true
			}
			if made++; f.dir != "bootstrap/target" {
				t.Errorf("%s makes a spec.Target: ask bootstrap/target for it", f.at(literal))
			}
			return true
		})
	}
	if made == 0 {
		t.Fatal("nobody makes a spec.Target")
	}
}

// What a condition or a result says is for people: what decides asks for its status or its reason, or for what the message was made of.
func TestNobodyParsesMessages(t *testing.T) {
	parsers := map[string]bool{}
	for _, name := range []string{
		"Contains", "ContainsAny", "Count", "Cut", "CutPrefix", "CutSuffix", "EqualFold", "Fields", "HasPrefix", "HasSuffix", "Index", "LastIndex",
		"MatchString", "FindString", "FindStringSubmatch", "Split", "SplitN", "SplitSeq", "TrimPrefix", "Sscanf",
	} {
		parsers[name] = true
	}
	for _, f := range files(t) {
		if f.isTest() || !within(f.dir, "bootstrap/...", "controlplane/...", "exp/...", "cmd/...", "internal/...") {
			continue
		}
		kept := map[string]bool{} // the variables of one function that have a message
		said := func(expression ast.Expr) bool {
			switch e := expression.(type) {
			case *ast.CallExpr:
				selector, ok := e.Fun.(*ast.SelectorExpr)
				return ok && selector.Sel.Name == "GetMessage"
			case *ast.SelectorExpr:
				return e.Sel.Name == "Message"
			case *ast.Ident:
				return kept[e.Name]
			}
			return false
		}
		ast.Inspect(f.syntax, func(node ast.Node) bool {
			switch n := node.(type) {
			case *ast.FuncDecl:
				clear(kept)
			case *ast.AssignStmt:
				for i, value := range n.Rhs {
					if name, ok := n.Lhs[i].(*ast.Ident); ok && len(n.Lhs) == len(n.Rhs) && said(value) {
						kept[name.Name] = true
					}
				}
			case *ast.CallExpr:
				if selector, ok := n.Fun.(*ast.SelectorExpr); ok && parsers[selector.Sel.Name] && slices.ContainsFunc(n.Args, said) {
					t.Errorf("%s parses a message: ask for the status or the reason, or for what it was made of", f.at(n))
				}
			case *ast.BinaryExpr:
				literal, ok := n.Y.(*ast.BasicLit)
				if (n.Op == token.EQL || n.Op == token.NEQ) && (said(n.X) || said(n.Y)) && !(ok && literal.Value == `""`) {
					t.Errorf("%s compares a message: ask for the status or the reason, or have what sets it say whether it has changed", f.at(n))
				}
			}
			return true
		})
	}
}

// Only pkg/host speaks SSH. The pool of test hosts makes keys, and checks the hosts that it starts; bundles are signed by SSH keys.
func TestOnlyHostsSpeakSSH(t *testing.T) {
	for _, f := range files(t) {
		for name, spec := range f.imports() {
			if within(name, "golang.org/x/crypto/ssh/...") && !within(f.dir, "pkg/host/...", "pkg/artifact", "test/...") && !f.isTest() {
				t.Errorf("%s: only pkg/host speaks SSH: use its Host", f.at(spec))
			}
		}
	}
}
