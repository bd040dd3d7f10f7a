// Copyright 2026 The cluster-api-provider-kubexm Authors.
// SPDX-License-Identifier: Apache-2.0

package architecture

import (
	"fmt"
	"go/ast"
	"go/token"
	"reflect"
	"regexp"
	"slices"
	"strconv"
	"strings"
	"testing"
)

// These are rules of Kubernetes' API conventions, as kube-api-linter has them. They hold for what is in a custom resource.

// flags are the booleans that Cluster API's contracts ask for; everything else can grow more states than two.
var flags = []string{"dataSecretCreated", "controlPlaneInitialized", "provisioned"}

// foreign are types of other APIs, which have their own rules, and are no string, list or number.
var foreign = regexp.MustCompile(`^(metav1|clusterv1|corev1|resource|bootstrapv1|spec)\.`)

// lists are foreign types that are lists, with their markers.
var lists = []string{"clusterv1.MachineAddresses"}

// field is one field of a struct that is written as JSON.
type field struct {
	json, kind, options, doc string
	// named has the doc comments of the package's own types.
	named map[string]*ast.GenDecl
	specs map[string]*ast.TypeSpec
}

func (f *field) has(marker string) bool {
	return regexp.MustCompile(`(?m)^\+` + regexp.QuoteMeta(marker) + `(=|:|$)`).MatchString(f.doc)
}

// kindOf is a type as it is written.
func kindOf(expression ast.Expr) string {
	switch e := expression.(type) {
	case *ast.Ident:
		return e.Name
	case *ast.StarExpr:
		return "*" + kindOf(e.X)
	case *ast.ArrayType:
		return "[]" + kindOf(e.Elt)
	case *ast.MapType:
		return "map[" + kindOf(e.Key) + "]" + kindOf(e.Value)
	case *ast.SelectorExpr:
		return kindOf(e.X) + "." + e.Sel.Name
	}
	return fmt.Sprintf("%T", expression)
}

// plain is a comment's text with its markers, without slashes.
func plain(group *ast.CommentGroup) string {
	if group == nil {
		return ""
	}
	var lines []string
	for _, comment := range group.List {
		lines = append(lines, strings.TrimSpace(strings.TrimPrefix(comment.Text, "//")))
	}
	return strings.Join(lines, "\n")
}

// apiTypes are the type declarations of a directory's files.
func apiTypes(all []*file, dir string) (map[string]*ast.GenDecl, map[string]*ast.TypeSpec) {
	docs, specs := map[string]*ast.GenDecl{}, map[string]*ast.TypeSpec{}
	for _, f := range all {
		if f.dir != dir || f.isTest() || f.isGenerated() {
			continue
		}
		for _, declaration := range f.syntax.Decls {
			general, ok := declaration.(*ast.GenDecl)
			if !ok || general.Tok != token.TYPE {
				continue
			}
			for _, spec := range general.Specs {
				if named, ok := spec.(*ast.TypeSpec); ok {
					docs[named.Name.Name], specs[named.Name.Name] = general, named
				}
			}
		}
	}
	return docs, specs
}

func TestFieldsOfAPIs(t *testing.T) {
	const path, begin = "bootstrap/api/v1beta1/planted.go", "// Planted is.\ntype Planted struct "
	kept(t, fieldsOfAPIs,
		plant{"planted.go:2: begin the comment of Planted with its name", path, "type Planted struct{}"},
		plant{"planted.go:3: Planted.some: a bool cannot grow", path, begin + "{ Some bool `json:\"some\"` }"},
		plant{"planted.go:4: Planted: Other has no name in JSON", path, begin + "{\n Other string; A string `json:\"a\"` }"},
	)
}

// Each problem of a field is found, and by itself.
func TestProblemsOfFieldsAreSeen(t *testing.T) {
	const short = "+kubebuilder:validation:MinLength=1\n+kubebuilder:validation:MaxLength=9"
	alone := func(want, json, options, kind, doc string) {
		found := (&field{json: json, options: options, kind: kind, doc: doc}).problems()
		if want == "" && len(found) == 0 {
			return
		}
		if len(found) != 1 || !strings.Contains(found[0], want) {
			t.Errorf("found %q, want %q alone", found, want)
		}
	}
	alone("", "a", "omitempty", "string", "a is.\n+optional\n"+short)
	alone("say one of +optional", "a", "omitempty", "string", "a is.\n"+short)
	alone("begin the comment", "a", "omitempty", "string", "It is.\n+optional\n"+short)
	alone("in camelCase", "A", "omitempty", "string", "A is.\n+optional\n"+short)
	alone("the tag omitempty", "a", "", "string", "a is.\n+optional\n"+short)
	const properties, items = "+kubebuilder:validation:MaxProperties=1", "\n+kubebuilder:validation:MaxItems=1"
	for want, f := range map[string][]string{
		"maps are of strings alone":     {"map[string]int", properties},
		"by MaxProperties":              {"map[string]string", ""},
		"limit the string by MaxLength": {"string", "+kubebuilder:validation:MinLength=1"},
		"say by MinLength":              {"*string", "+kubebuilder:validation:MaxLength=1"},
		"by Minimum":                    {"int32", ""},
		"a bool cannot grow":            {"*bool", ""},
		"is not for APIs":               {"float64", ""},
		"say by listType":               {"[]int32", items},
		"by MaxItems":                   {"[]int32", "+listType=set"},
		"say by listMapKey":             {"[]T", "+listType=map" + items},
		"items are no pointers":         {"[]*T", "+listType=atomic" + items},
		"by items:MaxLength":            {"[]string", "+listType=set" + items},
	} {
		alone(want, "a", "omitempty", f[0], "a is.\n+optional\n"+f[1])
	}
}

func fieldsOfAPIs(in *tree, report func(string, ...any)) {
	all, seen := in.files, 0
	for _, f := range all {
		if !within(f.dir, "pkg/spec", "bootstrap/api/...", "controlplane/api/...", "exp/infrastructure/api/...") || f.isTest() || f.isGenerated() {
			continue
		}
		docs, specs := apiTypes(all, f.dir)
		ast.Inspect(f.syntax, func(node ast.Node) bool {
			named, ok := node.(*ast.TypeSpec)
			if !ok {
				return true
			}
			structure, ok := named.Type.(*ast.StructType)
			if !ok || !named.Name.IsExported() {
				return true
			}
			if !strings.HasPrefix(docs[named.Name.Name].Doc.Text(), named.Name.Name+" ") {
				report("%s: begin the comment of %s with its name", f.at(named), named.Name.Name)
			}
			tagged := slices.ContainsFunc(structure.Fields.List, func(member *ast.Field) bool { return member.Tag != nil })
			for _, member := range structure.Fields.List {
				if member.Tag == nil {
					for _, name := range member.Names {
						if name.IsExported() && tagged {
							report("%s: %s: %s has no name in JSON", f.at(member), named.Name.Name, name.Name)
						}
					}
					continue
				}
				tag, err := strconv.Unquote(member.Tag.Value)
				if err != nil {
					report("%s: %v", f.at(member), err)
				}
				name, options, _ := strings.Cut(reflect.StructTag(tag).Get("json"), ",")
				if name == "" || name == "-" {
					continue // inline, or no JSON
				}
				seen++
				for _, problem := range (&field{
					json: name, options: options, kind: kindOf(member.Type), doc: plain(member.Doc), named: docs, specs: specs,
				}).problems() {
					report("%s: %s.%s: %s", f.at(member), named.Name.Name, name, problem)
				}
			}
			return true
		})
	}
	if seen < 100 {
		report("only %d fields were found: this test does not see the APIs", seen)
	}
}

// problems are what the field does not say of itself.
func (f *field) problems() []string {
	var found []string
	refuse := func(bad bool, format string, args ...any) {
		if bad {
			found = append(found, fmt.Sprintf(format, args...))
		}
	}
	refuse(f.has("optional") == f.has("required"), "say one of +optional and +required")
	refuse(!strings.HasPrefix(f.doc, f.json+" "), "begin the comment with %q", f.json)
	refuse(!regexp.MustCompile(`^[a-z][A-Za-z0-9]*$`).MatchString(f.json), "write the name in camelCase")
	if f.json == "metadata" || f.json == "items" && strings.HasPrefix(f.kind, "[]") {
		return found
	}
	refuse(!strings.Contains(f.options, "omitempty"), "give the tag omitempty: a zero value is one that was left out")

	kind := strings.TrimPrefix(f.kind, "*")
	element, isList := strings.CutPrefix(kind, "[]")
	underlying, enumerated := f.resolve(kind)
	switch {
	case isList:
		f.checkList(element, refuse)
	case slices.Contains(lists, kind), foreign.MatchString(kind):
	case strings.HasPrefix(kind, "map["):
		refuse(kind != "map[string]string", "maps are of strings alone: make a list with a key of it")
		refuse(!f.has("kubebuilder:validation:MaxProperties"), "limit the map by MaxProperties")
	case underlying == "string":
		refuse(!enumerated && !f.has("kubebuilder:validation:MaxLength"), "limit the string by MaxLength")
		refuse(!enumerated && !f.has("kubebuilder:validation:MinLength"), "say by MinLength whether the string may be empty")
	case underlying == "int32", underlying == "int64":
		refuse(!f.has("kubebuilder:validation:Minimum") && !f.has("kubebuilder:validation:XValidation"), "limit the number by Minimum")
	case underlying == "bool":
		refuse(!slices.Contains(flags, f.json), "a bool cannot grow: use an enumeration of strings")
	case underlying == "struct":
		refuse(!strings.Contains(f.options, "omitzero") && !strings.HasPrefix(f.kind, "*"), "give the tag omitzero")
	default:
		refuse(true, "the type %s is not for APIs: use int32, int64, string, or a struct", f.kind)
	}
	return found
}

func (f *field) checkList(element string, refuse func(bool, string, ...any)) {
	refuse(!f.has("listType"), "say by listType how lists are merged")
	refuse(!f.has("kubebuilder:validation:MaxItems"), "limit the list by MaxItems")
	refuse(f.has("listType") && strings.Contains(f.doc, "+listType=map") && !f.has("listMapKey"), "say by listMapKey what tells items apart")
	refuse(strings.HasPrefix(element, "*"), "items are no pointers")
	if underlying, enumerated := f.resolve(element); underlying == "string" && !enumerated {
		refuse(!f.has("kubebuilder:validation:items:MaxLength"), "limit the strings by items:MaxLength")
	}
}

// resolve is what a type of the package is made of, and whether its values are enumerated.
func (f *field) resolve(kind string) (underlying string, enumerated bool) {
	named, found := f.specs[kind]
	if !found {
		return kind, false
	}
	if _, isStruct := named.Type.(*ast.StructType); isStruct {
		return "struct", false
	}
	return kindOf(named.Type), strings.Contains(plain(f.named[kind].Doc), "+kubebuilder:validation:Enum=")
}
