// Copyright 2026 The cluster-api-provider-kubexm Authors.
// SPDX-License-Identifier: Apache-2.0

package v1beta1

import (
	"cmp"
	"fmt"
	"strings"
	"text/template"
	"text/template/parse"
)

const (
	// longestMachineName is what the names of Machines may have, because they are used as labels.
	longestMachineName = 63
	// defaultMachineName is the template where none is given.
	defaultMachineName = "{{ .kubexmControlPlane.name }}-{{ .random }}"
)

// MachineNaming says how Machines are named. Their KubexmConfigs and infrastructure machines have the same names.
//
// +kubebuilder:validation:MinProperties=1
type MachineNaming struct {
	// template is a Go template of text and the variables .cluster.name, .kubexmControlPlane.name and .random, five letters and
	// digits without which names would not differ. It has no functions, conditions or loops. What is longer than 63 characters is
	// cut, and ends with five others. If unset, {{ .kubexmControlPlane.name }}-{{ .random }}.
	// +optional
	// +kubebuilder:validation:MinLength=1
	// +kubebuilder:validation:MaxLength=256
	Template string `json:"template,omitempty"`
}

// Name is the name of a new Machine of a control plane and its Cluster. random are five letters and digits. The error is the
// template's.
func (n MachineNaming) Name(cluster, controlPlane, random string) (string, error) {
	parsed, err := template.New("template").Option("missingkey=error").Parse(cmp.Or(n.Template, defaultMachineName))
	if err != nil {
		return "", fmt.Errorf("template of Machines' names: %w", err)
	}
	if other := notAVariable(parsed); other != "" {
		return "", fmt.Errorf("template of Machines' names: %s: use text, {{ .cluster.name }}, {{ .kubexmControlPlane.name }} and "+
			"{{ .random }} alone", other)
	}
	var name strings.Builder
	if err := parsed.Execute(&name, map[string]any{
		"cluster":            map[string]any{"name": cluster},
		"kubexmControlPlane": map[string]any{"name": controlPlane},
		"random":             random,
	}); err != nil {
		return "", fmt.Errorf("template of Machines' names: %w", err)
	}
	if name.Len() > longestMachineName {
		return name.String()[:longestMachineName-len(random)] + random, nil
	}
	return name.String(), nil
}

// notAVariable is what a template has beside text and variables, "" if nothing. Loops and functions could take any time and memory of the
// manager, and tenants write templates.
func notAVariable(t *template.Template) string {
	for _, other := range t.Templates() {
		if other.Name() != t.Name() {
			return fmt.Sprintf("{{define %q}}", other.Name())
		}
	}
	if t.Tree == nil {
		return "" // it has nothing but definitions of nothing
	}
	for _, node := range t.Root.Nodes {
		action, isAction := node.(*parse.ActionNode)
		if _, isText := node.(*parse.TextNode); isText || isAction && isVariable(action.Pipe) {
			continue
		}
		return node.String()
	}
	return ""
}

// isVariable reports whether a pipeline is a field and nothing else.
func isVariable(p *parse.PipeNode) bool {
	if len(p.Decl) > 0 || len(p.Cmds) != 1 || len(p.Cmds[0].Args) != 1 {
		return false
	}
	_, is := p.Cmds[0].Args[0].(*parse.FieldNode)
	return is
}
