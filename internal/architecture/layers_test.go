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
	kept(t, genericSteps,
		plant{"planted.go:3 uses the generic step.File", "pkg/module/planted.go", "import made \"./pkg/step\"\nvar file = made.File{}"},
		plant{"planted.go:3 uses the generic step.Programs", "bootstrap/door/planted.go", "import \"./pkg/step\"\nvar all = step.Programs(`/`, nil)"},
	)
}

func genericSteps(in *tree, report func(string, ...any)) {
	generic := genericKinds(in.files)
	if len(generic) < 10 || !generic["File"] || !generic["Command"] {
		report("the generic kinds of pkg/step were not found: %v", generic)
	}
	for _, f := range in.files {
		// Plans are printed and read, and engines run, whatever the step; what is tested and measured is as generic as can be.
		if within(f.dir, "pkg/step/...", "pkg/component/...", "pkg/plan/...", "pkg/engine/...", "pkg/kube/...", "test/...") || f.isTest() {
			continue
		}
		for name, node := range uses(f, "pkg/step") {
			if generic[name] {
				report("%s uses the generic step.%s: make a dedicated step of it, below pkg/step", f.at(node), name)
			}
		}
	}
}

// Tasks are made of dedicated steps, a component's own as well: generic ones stand in them as parts of step.New alone. What a function
// returns that a task calls has a name, then, as component/act, of which a table is generated.
func TestTasksHaveNoLooseSteps(t *testing.T) {
	const path, absent = "pkg/component/flannel/planted.go", "flannel/planted.go:2 has a loose step.Absent in a task"
	kept(t, looseSteps,
		plant{absent, path, "func planted() plan.Task { return plan.Task{Steps: []step.Step{step.Absent{Path: `/`}}} }"},
		plant{absent, path, "func planted(t *plan.Task) { s := step.Absent{Path: `/`}; t.Steps = append(t.Steps, s) }"},
		plant{"has a loose step.Programs in a task", path, "func planted() plan.Task { return plan.Task{Steps: step.Programs(`/`, nil)} }"},
		plant{`a task has the step "absent", which is no dedicated one`, "pkg/spec/zz_generated.tasks.go",
			`var tasks = []Task{{"planted", OnHosts, []string{"cni/plugins", "absent"}}}`},
	)
}

func looseSteps(in *tree, report func(string, ...any)) {
	generic, tasks, named := genericKinds(in.files), 0, 0
	delete(generic, "Sequence")
	for _, f := range in.files {
		for _, declaration := range f.syntax.Decls {
			function, ok := declaration.(*ast.FuncDecl)
			if !ok || !within(f.dir, "pkg/component/...", "pkg/task") || f.isTest() || !mentions(function, "plan.Task") {
				continue
			}
			tasks++
			ast.Inspect(function.Body, func(node ast.Node) bool {
				made := ""
				switch n := node.(type) {
				case *ast.CallExpr:
					if made = called(n); made == "step.New" {
						return false // its parts
					}
				case *ast.CompositeLit:
					made = kindOf(n.Type)
				}
				if name, ok := strings.CutPrefix(made, "step."); ok && generic[name] {
					report("%s has a loose step.%s in a task: make a dedicated step of it, by step.New", f.at(node), name)
				}
				return true
			})
		}
		if f.path != "pkg/spec/zz_generated.tasks.go" {
			continue
		}
		ast.Inspect(f.syntax, func(node ast.Node) bool {
			names, ok := node.(*ast.CompositeLit)
			if !ok || kindOf(names.Type) != "[]string" {
				return true
			}
			for _, e := range names.Elts {
				if name, ok := e.(*ast.BasicLit); ok {
					if named++; !strings.Contains(name.Value, "/") {
						report("a task has the step %s, which is no dedicated one", name.Value)
					}
				}
			}
			return false
		})
	}
	if tasks < 50 || named == 0 {
		report("only %d functions that make tasks were found, and %d names of steps", tasks, named)
	}
}

// mentions reports whether a function makes, takes or returns what has this type.
func mentions(function *ast.FuncDecl, kind string) (found bool) {
	ast.Inspect(function, func(node ast.Node) bool {
		e, ok := node.(ast.Expr)
		found = found || ok && strings.TrimLeft(kindOf(e), "[]*") == kind
		return !found
	})
	return found
}

// The engine runs whatever the step. It knows one kind, since that is a part of how it runs: a savepoint.
func TestEngineKnowsNoKindOfStep(t *testing.T) {
	kept(t, kindsInEngine,
		plant{"planted.go:3 knows step.Command", "pkg/engine/planted.go", "import \"./pkg/step\"\nvar _, is = planted.(step.Command)"},
		plant{"planted.go:3 knows step.KindOf", "pkg/engine/planted.go", "import \"./pkg/step\"\nvar kind = step.KindOf(planted)"},
	)
}

func kindsInEngine(in *tree, report func(string, ...any)) {
	generic := genericKinds(in.files)
	for _, f := range in.files {
		if f.dir != "pkg/engine" || f.isTest() {
			continue
		}
		for name, node := range uses(f, "pkg/step") {
			says := name == "KindOf" && f.path != "pkg/engine/gate.go" // in a message
			if says || generic[name] && !strings.HasPrefix(name, "Savepoint") {
				report("%s knows step.%s: have the step say by its contract what the engine must know of it", f.at(node), name)
			}
		}
	}
}

// A component is its own folder's business: its siblings do not know it, and others ask its slot. Only the tables name it.
func TestComponentsAreAskedByTheirSlot(t *testing.T) {
	kept(t, slots,
		plant{"pkg/module/planted.go:2 knows the component calico", "pkg/module/planted.go", `import _ "./pkg/component/calico"`},
		plant{"pkg/component/flannel/planted.go:2 knows the component calico", "pkg/component/flannel/planted.go",
			`import _ "./pkg/component/calico"`},
	)
}

func slots(in *tree, report func(string, ...any)) {
	const all, tables = "pkg/component", "pkg/component/tables"
	named := 0
	for _, f := range in.files {
		for name, spec := range f.imports() {
			imported, ours := strings.CutPrefix(name, "./")
			switch {
			case !ours || path.Dir(imported) != all || imported == tables:
			case f.dir == tables:
				named++
			case f.dir != imported && !f.isTest() && !within(f.dir, "test/..."):
				report("%s knows the component %s: ask what fills its slot (component.Slots)", f.at(spec), path.Base(imported))
			}
		}
	}
	if named == 0 {
		report("no table names a component")
	}
}

// How an operating system says what it is, what only one family calls a package, and which command manages packages is known below pkg/os.
// What builds artifacts works on a Debian of its own, and a fake host has to be something.
func TestOperatingSystemsAreNamedInTheirFolder(t *testing.T) {
	kept(t, namesOfSystems,
		plant{`planted.go:2: "ubuntu" is for a family`, "pkg/step/system/planted.go", "const planted = `ubuntu`"},
		plant{`planted.go:2: "apt-get install x" is for a family`, "pkg/step/system/planted.go", "const planted = `apt-get install x`"},
		plant{"pkg/component/planted.sh:2 manages packages", "pkg/component/planted.sh", "set -e\ndnf -y install x\n"},
	)
}

func namesOfSystems(in *tree, report func(string, ...any)) {
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
		report("the names of operating systems and their packages were not found: %v", known)
	}
	manager := regexp.MustCompile(`\b(apt-get|apt|dnf|yum) (-\S+ )*(install|remove|purge)\b`)
	for _, f := range in.texts {
		if path.Ext(f.path) != ".sh" || within(f.dir, "pkg/artifact/...", "pkg/host/internal/posix/lib", "test/...", "hack") {
			continue
		}
		for i, line := range strings.Split(string(f.content), "\n") {
			if manager.MatchString(line) && !strings.HasPrefix(strings.TrimSpace(line), "#") {
				report("%s:%d manages packages: have a step.Package do so", f.path, i+1)
			}
		}
	}
	for _, f := range in.files {
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
			if err == nil && (known[text] || manager.MatchString(text)) {
				report("%s: %q is for a family of operating systems to say: ask component.Inputs.OS", f.at(literal), text)
			}
			return true
		})
	}
}

// What a host must be is computed in one place, for reconcilers and the command line. The library's users write targets themselves.
func TestTargetsAreMadeInOnePlace(t *testing.T) {
	const path, makes, use = "bootstrap/reconcilers/planted.go", "planted.go:3 makes a spec.Target", "import \"./pkg/spec\"\n"
	kept(t, targets,
		plant{makes, path, use + "func planted(h spec.Host) spec.Target { return spec.Target{Host: h} }"},
		plant{makes, path, use + "func planted(h spec.Host) (t spec.Target) { t.Host = h; return t }"},
		plant{"bootstrap/target/planted.go:2 imports k8s.io/client-go/rest", "bootstrap/target/planted.go", `import _ "k8s.io/client-go/rest"`},
	)
}

func targets(in *tree, report func(string, ...any)) {
	made, info := 0, typesOf(in)
	for _, f := range in.files {
		if f.isTest() || !within(f.dir, "bootstrap/...", "controlplane/...", "exp/...", "cmd/...", "internal/...") {
			continue
		}
		for name, spec := range f.imports() {
			if f.dir == "bootstrap/target" && within(name, "sigs.k8s.io/controller-runtime/...", "k8s.io/client-go/...", "context", "time", "os", "net/...") {
				report("%s imports %s: a target is a pure function of objects", f.at(spec), name)
			}
		}
		ast.Inspect(f.syntax, func(node ast.Node) bool {
			makes := false
			switch n := node.(type) {
			case *ast.CompositeLit:
				makes = len(n.Elts) > 0 && kindOf(n.Type) == "spec.Target"
			case *ast.AssignStmt:
				for _, to := range n.Lhs {
					field, ok := to.(*ast.SelectorExpr)
					makes = makes || ok && info.named(field.X, "pkg/spec") == "Target"
				}
			}
			if makes {
				made++
				if f.dir != "bootstrap/target" {
					report("%s makes a spec.Target: ask bootstrap/target for it", f.at(node))
				}
			}
			return true
		})
	}
	if made == 0 {
		report("nobody makes a spec.Target")
	}
}

// What a condition or a result says is for people: what decides asks for its status or its reason, or for what the message was made of.
func TestNobodyParsesMessages(t *testing.T) {
	const path = "exp/inplace/planted.go"
	kept(t, parsedMessages,
		plant{"planted.go:2 parses a message", path, "func planted(c condition) bool { return strings.Contains(c.Message, `etcd`) }"},
		plant{"planted.go:2 parses a message", path, "func planted(c condition) bool { said := c.GetMessage(); return etcd.MatchString(said) }"},
		plant{"planted.go:2 compares a message", path, "func planted(c condition) bool { return c.Message != `etcd` }"},
	)
}

func parsedMessages(in *tree, report func(string, ...any)) {
	says := func(e ast.Expr) bool {
		if call, ok := e.(*ast.CallExpr); ok {
			return strings.HasSuffix(called(call), ".GetMessage")
		}
		selector, ok := e.(*ast.SelectorExpr)
		return ok && selector.Sel.Name == "Message"
	}
	for _, f := range in.files {
		if f.isTest() || !within(f.dir, "bootstrap/...", "controlplane/...", "exp/...", "cmd/...", "internal/...") {
			continue
		}
		readAsText(f, says, func(n ast.Node) {
			report("%s parses a message: ask for the status or the reason, or for what it was made of", f.at(n))
		}, func(n ast.Node) {
			report("%s compares a message: ask for the status or the reason, or have what sets it say whether it has changed", f.at(n))
		})
	}
}

// parsers are functions and methods that look for something in a text.
var parsers = []string{
	"Contains", "ContainsAny", "Count", "Cut", "CutPrefix", "CutSuffix", "EqualFold", "Fields", "HasPrefix", "HasSuffix", "Index", "LastIndex",
	"MatchString", "FindString", "FindStringSubmatch", "Split", "SplitN", "SplitSeq", "TrimPrefix", "Sscanf",
}

// readAsText finds where a file parses or compares what says so, be it kept in a variable of the function.
func readAsText(f *file, says func(ast.Expr) bool, parses, compares func(ast.Node)) {
	kept := map[string]bool{}
	said := func(e ast.Expr) bool {
		name, ok := e.(*ast.Ident)
		return ok && kept[name.Name] || says(e)
	}
	ast.Inspect(f.syntax, func(node ast.Node) bool {
		switch n := node.(type) {
		case *ast.FuncDecl:
			clear(kept)
		case *ast.AssignStmt:
			for i, value := range n.Rhs {
				if name, ok := n.Lhs[i].(*ast.Ident); ok && len(n.Lhs) == len(n.Rhs) && says(value) {
					kept[name.Name] = true
				}
			}
		case *ast.CallExpr:
			selector, ok := n.Fun.(*ast.SelectorExpr)
			if ok && slices.Contains(parsers, selector.Sel.Name) && slices.ContainsFunc(n.Args, said) {
				parses(n)
			}
		case *ast.BinaryExpr:
			literal, ok := n.Y.(*ast.BasicLit)
			if (n.Op == token.EQL || n.Op == token.NEQ) && (said(n.X) || said(n.Y)) && !(ok && literal.Value == `""`) {
				compares(n)
			}
		}
		return true
	})
}

// Only pkg/host speaks SSH. The pool of test hosts makes keys, and checks the hosts that it starts; bundles are signed by SSH keys.
func TestOnlyHostsSpeakSSH(t *testing.T) {
	kept(t, ssh, plant{"planted.go:2: only pkg/host speaks SSH", "bootstrap/door/planted.go", `import _ "golang.org/x/crypto/ssh"`})
}

func ssh(in *tree, report func(string, ...any)) {
	for _, f := range in.files {
		for name, spec := range f.imports() {
			if within(name, "golang.org/x/crypto/ssh/...") && !within(f.dir, "pkg/host/...", "pkg/artifact", "test/...") && !f.isTest() {
				report("%s: only pkg/host speaks SSH: use its Host", f.at(spec))
			}
		}
	}
}
