// Copyright 2026 The cluster-api-provider-kubexm Authors.
// SPDX-License-Identifier: Apache-2.0

package architecture

import (
	"slices"
	"strings"
	"testing"
)

// rule says what packages may import of this repository, beside packages below and above them in their own tree.
type rule struct {
	packages string
	imports  []string
}

// apis are the types that everybody may speak of.
var apis = []string{"bootstrap/api/...", "controlplane/api/...", "exp/infrastructure/api/..."}

// engine is what reconcilers use of pkg: intents and what runs them, and never what these are made of. Of pkg/step they
// need data, such as references to secrets; layers_test.go sees that they make no steps.
var engine = []string{
	"pkg/step", "pkg/pipeline/...", "pkg/engine/...", "pkg/plan/...", "pkg/graph/...", "pkg/event/...", "pkg/preflight/...",
	"pkg/host/...", "pkg/backup/...", "pkg/certificate/...", "pkg/quorum/...", "pkg/artifact/...", "pkg/kube/...", "pkg/pki/...",
	"pkg/spec/...", "pkg/secret/...",
}

// rules is the order of the house: pipeline → module → task and component → step → host, never back and never across a layer. The
// first rule that fits a package counts; a package that none fits may not exist before it has been given its place here.
var rules = []rule{
	// The engine, from the bottom up. Nothing here knows Cluster API's objects or ours.
	{"pkg/secret/...", nil},
	{"pkg/atomicfile", nil},
	{"pkg/graph/...", nil},
	{"pkg/event/...", []string{"pkg/secret"}},
	{"pkg/artifact/...", []string{"pkg/secret", "pkg/atomicfile"}},
	{"pkg/pki/...", []string{"pkg/secret"}},
	{"pkg/spec/...", []string{"pkg/secret"}},
	{"pkg/host/...", []string{"pkg/secret"}},
	{"pkg/certificate/...", []string{"pkg/host", "pkg/pki", "pkg/secret"}},
	{"pkg/quorum/...", []string{"pkg/host"}},
	{"pkg/backup/...", []string{"pkg/host", "pkg/secret", "pkg/atomicfile"}},
	// What an operating system is called, and has where, is asked of its family.
	{"pkg/os/tables", []string{"pkg/os/..."}},
	{"pkg/os/...", []string{"pkg/os/family"}},
	{"pkg/preflight/...", []string{"pkg/component", "pkg/component/tables", "pkg/os/tables", "pkg/host", "pkg/spec", "pkg/artifact"}},
	{"pkg/step/...", []string{"pkg/os/family", "pkg/host", "pkg/artifact", "pkg/artifact/deb", "pkg/pki", "pkg/graph", "pkg/spec", "pkg/secret"}},
	{"pkg/plan/...", []string{"pkg/step", "pkg/graph", "pkg/host", "pkg/secret", "pkg/artifact"}},
	{"pkg/kube/...", []string{"pkg/step", "pkg/secret", "pkg/spec"}},
	{"pkg/engine/...", []string{"pkg/plan", "pkg/step", "pkg/graph", "pkg/host", "pkg/event", "pkg/secret"}},
	// A component is made of steps and tasks. Tables know all of them, and tasks, modules and pipelines what they have in common.
	{"pkg/component/tables", []string{"pkg/component/...", "pkg/spec"}},
	{"pkg/component/...", []string{"pkg/os/family", "pkg/step/...", "pkg/plan", "pkg/graph", "pkg/host", "pkg/artifact", "pkg/pki", "pkg/spec", "pkg/secret"}},
	{"pkg/task/...", []string{
		"pkg/os/family", "pkg/component", "pkg/step/...", "pkg/plan", "pkg/graph", "pkg/host", "pkg/artifact", "pkg/pki", "pkg/spec", "pkg/secret",
	}},
	{"pkg/module/...", []string{"pkg/os/tables", "pkg/task/...", "pkg/component", "pkg/component/tables", "pkg/plan", "pkg/host", "pkg/artifact", "pkg/spec"}},
	{"pkg/pipeline/...", []string{"pkg/module/...", "pkg/plan", "pkg/host", "pkg/artifact", "pkg/spec"}},

	// The providers know each other by their API types alone.
	{"bootstrap/api/...", []string{"pkg/spec"}},
	{"controlplane/api/...", []string{"bootstrap/api/...", "pkg/spec"}},
	{"exp/infrastructure/api/...", []string{"pkg/spec"}},
	{"bootstrap/webhooks/...", []string{"bootstrap/api/...", "internal/admission", "pkg/spec"}},
	{"controlplane/webhooks/...", []string{"bootstrap/api/...", "controlplane/api/...", "internal/admission", "pkg/spec"}},
	{"exp/infrastructure/webhooks/...", []string{"exp/infrastructure/api/...", "internal/admission", "pkg/spec"}},
	{"exp/infrastructure/...", []string{"exp/infrastructure/...", "pkg/spec", "internal/..."}},
	// What a host must be is a function of objects.
	{"bootstrap/target", []string{"bootstrap/api/...", "internal/decision", "pkg/spec"}},
	// What hosts become follows from the bootstrap provider's own objects, no matter who writes them.
	{"bootstrap/...", slices.Concat(engine, []string{"bootstrap/...", "exp/infrastructure/api/...", "internal/..."})},
	{"controlplane/...", slices.Concat(engine, apis, []string{"controlplane/...", "internal/..."})},
	{"exp/inplace/...", slices.Concat(apis, []string{"internal/decision", "internal/hosthealth", "pkg/spec"})},
	// What hosts follow is asked where it is decided.
	{"exp/runtimeextension/...", slices.Concat(apis, []string{"bootstrap/webhooks", "exp/infrastructure/webhooks", "exp/inplace", "internal/hosthealth", "pkg/spec"})},
	{"exp/embedded/...", slices.Concat(engine, apis, []string{
		"bootstrap/setup", "controlplane/setup", "exp/infrastructure/setup", "exp/embedded/...", "config/...", "internal/...", "pkg/atomicfile",
	})},
	{"config/...", nil},
	{"internal/...", slices.Concat(apis, []string{"config/...", "internal/...", "pkg/spec"})},

	// Programs and tests put everything together.
	{"cmd/...", []string{"..."}},
	{"hack/...", []string{"..."}},
	{"test/...", []string{"..."}},
	{"templates/...", []string{"..."}},
}

func ruleOf(dir string) (rule, bool) {
	i := slices.IndexFunc(rules, func(r rule) bool { return within(dir, r.packages) })
	if i < 0 {
		return rule{}, false
	}
	return rules[i], true
}

func TestImports(t *testing.T) {
	kept(t, imports,
		plant{"pkg/step/planted.go imports pkg/component", "pkg/step/planted.go", `import _ "./pkg/component"`},
		plant{"pkg/planted/planted.go: say in rules what the package pkg/planted may import", "pkg/planted/planted.go", ""},
	)
}

func imports(in *tree, report func(string, ...any)) {
	used := map[string]bool{}
	for _, f := range in.files {
		rule, found := ruleOf(f.dir)
		used[rule.packages] = true
		if !found {
			report("%s: say in rules what the package %s may import", f.path, f.dir)
			continue
		}
		if f.isTest() {
			continue // a test may ask anybody for help
		}
		for name := range f.imports() {
			imported, ours := strings.CutPrefix(name, "./")
			if ours && !within(imported, rule.imports...) && !within(imported, rule.packages) {
				report("%s imports %s, which the rule of %s does not allow", f.path, imported, rule.packages)
			}
		}
	}
	for _, r := range rules {
		if !used[r.packages] {
			report("no package follows the rule of %s: it is below another one, or of nothing", r.packages)
		}
	}
}

// walls are what packages may not reach, whatever lies between; but is what may be reached behind it.
var walls = []struct {
	packages   string
	reach, but []string
}{
	{"pkg/...", []string{"bootstrap/...", "controlplane/...", "exp/...", "cmd/...", "config/...", "internal/...", "hack/...", "test/..."}, nil},
	{"internal/...", []string{"bootstrap/...", "controlplane/...", "exp/...", "cmd/...", "pkg/..."}, append(apis, "pkg/spec", "pkg/secret")},
	{"bootstrap/...", []string{"controlplane/...", "exp/...", "cmd/..."}, []string{"exp/infrastructure/api/..."}},
	{"bootstrap/target", []string{"..."}, []string{"bootstrap/api/...", "internal/decision", "pkg/spec", "pkg/secret"}},
	{"controlplane/...", []string{"bootstrap/...", "exp/...", "cmd/..."}, []string{"bootstrap/api/...", "exp/infrastructure/api/..."}},
	{"exp/infrastructure/...", []string{"bootstrap/...", "controlplane/...", "exp/...", "cmd/..."}, []string{"exp/infrastructure/..."}},
	{"exp/inplace", []string{"bootstrap/...", "controlplane/...", "exp/...", "cmd/..."}, apis},
	{"exp/runtimeextension", []string{"bootstrap/...", "controlplane/...", "exp/...", "cmd/..."}, append(
		apis, "bootstrap/webhooks", "exp/infrastructure/webhooks", "exp/inplace",
	)},
}

// forTests are packages of which tests are made, and no program.
func forTests(dir string) bool {
	return strings.HasSuffix(dir, "test") || within(dir, "test/...", "internal/testapi", "internal/golden")
}

func TestWallsHaveNoHoles(t *testing.T) {
	kept(t, holes,
		plant{"bootstrap/infra reaches controlplane/snapshot, by way of internal/planted",
			"internal/planted/planted.go", `import _ "./controlplane/snapshot"`, "bootstrap/infra/planted.go", `import _ "./internal/planted"`},
		plant{"exp/infrastructure/reconcilers reaches bootstrap/api/v1beta1, by way of internal/hosthealth",
			"exp/infrastructure/reconcilers/planted.go", `import _ "./internal/hosthealth"`},
		plant{"cmd/kubexm reaches pkg/component/nulltest, by way of pkg/component/tables",
			"pkg/component/tables/planted.go", `import _ "./pkg/component/nulltest"`},
	)
}

func holes(in *tree, report func(string, ...any)) {
	imports := map[string][]string{}
	for _, f := range in.files {
		for name := range f.imports() {
			if imported, ours := strings.CutPrefix(name, "./"); ours && !strings.HasSuffix(f.path, "_test.go") {
				imports[f.dir] = append(imports[f.dir], imported)
			}
		}
	}
	for dir := range imports {
		for reached, by := range reaches(imports, dir) {
			bad := forTests(reached)
			for _, w := range walls {
				behind := within(reached, w.reach...) && !within(reached, w.but...) && !within(reached, w.packages)
				bad = bad || behind && within(dir, w.packages)
			}
			if bad && !forTests(dir) {
				report("%s reaches %s, by way of %s", dir, reached, by)
			}
		}
	}
}

// reaches are the packages that dir imports, and those that they import, with one that does so.
func reaches(imports map[string][]string, dir string) map[string]string {
	by, queue := map[string]string{}, []string{dir}
	for ; len(queue) > 0; queue = queue[1:] {
		for _, imported := range imports[queue[0]] {
			if _, known := by[imported]; !known && imported != dir {
				by[imported], queue = queue[0], append(queue, imported)
			}
		}
	}
	return by
}

// aliases are the names by which packages are imported everywhere.
var aliases = map[string]string{
	"k8s.io/api/core/v1":                                       "corev1",
	"k8s.io/apimachinery/pkg/apis/meta/v1":                     "metav1",
	"k8s.io/apimachinery/pkg/api/errors":                       "apierrors",
	"k8s.io/apiextensions-apiserver/pkg/apis/apiextensions/v1": "apiextensionsv1",
	"sigs.k8s.io/cluster-api/api/core/v1beta2":                 "clusterv1",
	"sigs.k8s.io/controller-runtime":                           "ctrl",
	"./bootstrap/api/v1beta1":                                  "bootstrapv1",
	"./controlplane/api/v1beta1":                               "controlplanev1",
	"./exp/infrastructure/api/v1alpha1":                        "infrav1",
}

func TestAliases(t *testing.T) {
	kept(t, imported,
		plant{"planted.go:2: import k8s.io/api/core/v1 as corev1", "pkg/kube/planted.go", `import v1 "k8s.io/api/core/v1"`},
		plant{"planted.go:3 imports ./pkg/step twice", "pkg/kube/planted.go", "import \"./pkg/step\"\nimport other \"./pkg/step\""},
		plant{"planted.go:2: name what is used of ./pkg/step", "pkg/kube/planted.go", `import . "./pkg/step"`},
	)
}

// imported: other rules look for identifiers behind the name of a package, of which there is one in a file.
func imported(in *tree, report func(string, ...any)) {
	for _, f := range in.files {
		if f.isGenerated() {
			continue
		}
		specs := f.imports()
		for name, spec := range specs {
			if want, pinned := aliases[name]; pinned && (spec.Name == nil || spec.Name.Name != want) {
				report("%s: import %s as %s", f.at(spec), name, want)
			}
			if spec.Name != nil && spec.Name.Name == "." && !f.isTest() {
				report("%s: name what is used of %s", f.at(spec), name)
			}
		}
		for _, spec := range f.syntax.Imports {
			for name, last := range specs {
				if spec != last && spec.Path.Value == last.Path.Value {
					report("%s imports %s twice", f.at(last), name)
				}
			}
		}
	}
}
