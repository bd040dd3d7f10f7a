// Copyright 2026 The cluster-api-provider-kubexm Authors.
// SPDX-License-Identifier: Apache-2.0

package architecture

import (
	"go/ast"
	"go/token"
	"slices"
	"testing"
)

// choices are the enumerations by which a cluster's specification chooses components.
var choices = []string{
	"EtcdType", "KubernetesType", "NetworkPlugin", "ContainerRuntimeType", "LoadBalancerType", "LoadBalancerProxy", "DNSType", "ProxyMode",
}

// choiceReaders are files that read what a cluster's specification chooses beside the tables. None of them decides by it.
var choiceReaders = exempt{
	"bootstrap/webhooks/kubexmclusterconfig.go":   "writes the default down, where etcd is to be chosen once",
	"cmd/kubexm/internal/adopted/adopted.go":      "says what was chosen",
	"cmd/kubexm/internal/cli/declared.go":         "says what was chosen",
	"controlplane/reconcilers/serving.go":         "says what was chosen",
	"controlplane/webhooks/kubexmcontrolplane.go": "writes the default down, where etcd is to be chosen once",
	"pkg/component/binary/node.go":                "has kube-proxy's mode in its configuration",
	"pkg/preflight/network.go":                    "says what was chosen",
	"pkg/preflight/runtime.go":                    "takes what was chosen out of a copy of the table",
}

// What fills a slot is chosen by its table, whatever holds its name: nobody else has a value of these types, but to see whether something
// is chosen at all.
func TestNobodyAsksForAComponentByName(t *testing.T) {
	const path, use = "pkg/module/planted.go", "import \"./pkg/spec\"\n"
	const asks = "pkg/module/planted.go:3 asks for a component by spec.NetworkPlugin"
	kept(t, choicesByName,
		plant{asks, path, use + "func planted(n spec.Network) bool { return n.Plugin == spec.NetworkCalico }"},
		plant{asks, path, use + "func planted(n spec.Network) bool { plugin := n.Plugin; return plugin == `calico` }"},
		plant{asks, path, use + "func planted(c *spec.Cluster) int { return map[string]int{`calico`: 1}[string(c.Network.Plugin)] }"},
		plant{asks, path, use + "func planted(is spec.NetworkPlugin) int { switch is { case `calico`: return 1 }; return 0 }"},
		plant{asks, path, use + "func planted(n spec.Network) bool { return strings.HasPrefix(string(n.Plugin), `cal`) }"},
		plant{asks, path, use + "var planted = map[spec.NetworkPlugin]int{`calico`: 1}"},
		plant{asks, path, "import \"./pkg/component/tables\"\nvar planted = tables.Networks[`calico`]"},
		plant{"planted.go:3 asks for a component by spec.DNSType", "pkg/component/kubeproxy/planted.go",
			use + "func planted(c spec.Cluster) bool { return c.DNS.Type == spec.DNSNone }"},
		plant{"network.go:3 asks for a component by spec.NetworkPlugin", "pkg/preflight/network.go",
			use + "func planted(c spec.Cluster) bool { return string(c.Network.Plugin) == `calico` }"},
		plant{"pkg/preflight/runtime.go breaks the rule no more", "pkg/preflight/runtime.go", ""},
	)
}

func choicesByName(in *tree, report func(string, ...any)) {
	info, decided := typesOf(in), map[ast.Node]bool{}
	broken, end := choiceReaders.but(report)
	defer end()
	decides := func(by ast.Node) {
		if by != nil {
			ast.Inspect(by, func(n ast.Node) bool { decided[n] = true; return true })
		}
	}
	for _, f := range in.files {
		// Settings are read and validated where they are written down, and tests and benches write some.
		if within(f.dir, "pkg/component/tables", "pkg/spec/...", "test/...") || f.isTest() {
			continue
		}
		ast.Inspect(f.syntax, func(node ast.Node) bool {
			switch n := node.(type) {
			case *ast.BinaryExpr:
				if literal, ok := n.Y.(*ast.BasicLit); ok && literal.Value == `""` {
					return false
				}
				if n.Op == token.EQL || n.Op == token.NEQ {
					decides(n)
				}
			case *ast.SwitchStmt:
				decides(n.Tag)
			case *ast.IndexExpr:
				table, ok := n.X.(*ast.SelectorExpr)
				if ok && kindOf(table.X) == "tables" && info.Types[n.Index].Value == nil { // it is asked by what was chosen
					return false
				}
				decides(n.Index)
			}
			e, ok := node.(ast.Expr)
			kind := ""
			if ok && info.Types[e].IsValue() {
				kind = info.named(e, "pkg/spec")
			}
			// kube-proxy is one component, which tells its own modes apart.
			if !slices.Contains(choices, kind) || kind == "ProxyMode" && f.dir == "pkg/component/kubeproxy" {
				return true
			}
			const message = "%s asks for a component by spec.%s: ask what fills the slot (component.Slots)"
			if decided[e] {
				report(message, f.at(e), kind)
			} else {
				broken(f.path, message, f.at(e), kind)
			}
			return false
		})
	}
}

// In pkg/spec, what a cluster's specification may choose is named by the enumeration, which declares it, and by the tables, which have a
// line for each, and by nothing else. What config.yaml calls it is in pkg/spec/config.
func TestComponentsHaveALineInTheTablesOfTheSpecification(t *testing.T) {
	const path = "pkg/spec/planted.go"
	kept(t, linesOfChoices,
		plant{"pkg/spec/planted.go:2 asks for EtcdKubexm", path, "func (e *Etcd) planted() bool { return e.Type == EtcdKubexm }"},
		plant{`pkg/spec/planted.go:2 asks for "calico"`, path, "func (n *Network) planted() bool { return n.Plugin == `calico` }"},
		plant{"EtcdPlanted has no line in pkg/spec/components.go", path, `const EtcdPlanted EtcdType = "planted"`},
	)
}

func linesOfChoices(in *tree, report func(string, ...any)) {
	const tables = "pkg/spec/components.go"
	info, names, chosen, lines := typesOf(in), map[string]bool{}, map[string]bool{}, map[string]bool{}
	for _, f := range in.files {
		if f.dir != "pkg/spec" || f.isTest() {
			continue
		}
		ast.Inspect(f.syntax, func(node ast.Node) bool {
			switch n := node.(type) {
			case *ast.ValueSpec:
				if n.Type == nil || !slices.Contains(choices, kindOf(n.Type)) {
					return true
				}
				names[n.Names[0].Name], chosen[kindOf(n.Type)] = true, true
				return false // where it is declared
			case *ast.KeyValueExpr:
				if key, ok := n.Key.(*ast.Ident); ok && f.path == tables {
					lines[key.Name] = true
				}
			case ast.Expr:
				constant := info.Types[n].Value
				if constant == nil || constant.ExactString() == `""` || !slices.Contains(choices, info.named(n, "pkg/spec")) || f.path == tables {
					return true
				}
				said := constant.ExactString()
				if name, ok := n.(*ast.Ident); ok {
					if said = name.Name; positions.Position(info.Uses[name].Pos()).Filename == tables {
						return true // a default, which the tables have
					}
				}
				report("%s asks for %s: say in its line of %s what is so", f.at(n), said, tables)
			}
			return true
		})
	}
	if len(chosen) != len(choices) {
		report("pkg/spec has names of components for %v alone", chosen)
	}
	for name := range names {
		// A proxy has no settings of its own.
		if !lines[name] && name != "LoadBalancerHAProxy" && name != "LoadBalancerNginx" {
			report("%s has no line in %s", name, tables)
		}
	}
}
