// Copyright 2026 The cluster-api-provider-kubexm Authors.
// SPDX-License-Identifier: Apache-2.0

package config

import (
	"fmt"
	"reflect"
	"regexp"
	"slices"
	"strings"

	"go.yaml.in/yaml/v3"

	"github.com/mensylisir/cluster-api-provider-kubexm/pkg/secret"
)

// decoder sets Go values from a tree by their JSON names, and refuses all that does not fit. It shows no values: one
// of them may be a password in the wrong place.
type decoder struct {
	*tree
	// known are the paths of all fields, aliases and unsupported fields, with [] for each item of a list.
	known []string
}

func (d *decoder) refuse(node *yaml.Node, path, text string) {
	d.refused[path] = true
	d.tree.refuse(node, "%s", text)
}

var secretType = reflect.TypeFor[secret.Value]()

// decode sets into from node, whose path in the Go types is path.
func (d *decoder) decode(node *yaml.Node, into reflect.Value, path string) {
	d.decoded[path] = d.places[node]
	if isNull(node) {
		d.refused[path] = d.voided[node]
		return
	}
	kind := into.Kind()
	switch {
	case kind == reflect.Pointer:
		to := reflect.New(into.Type().Elem())
		d.decode(node, to.Elem(), path)
		into.Set(to)
	case into.Type() == secretType:
		if d.isText(node, path) {
			into.Set(reflect.ValueOf(secret.New(node.Value)))
		}
	case kind == reflect.String:
		if d.isText(node, path) {
			into.SetString(node.Value)
		}
	case kind == reflect.Int32 || kind == reflect.Int64:
		d.decodeNumber(node, into, path)
	case kind == reflect.Slice:
		if node.Kind != yaml.SequenceNode {
			d.refuse(node, path, "use a list, such as [a, b]")
			return
		}
		into.Set(reflect.MakeSlice(into.Type(), len(node.Content), len(node.Content)))
		for i, item := range node.Content {
			d.decode(item, into.Index(i), fmt.Sprintf("%s[%d]", path, i))
		}
	case strings.Contains(node.Value, "："):
		d.refuse(node, path, "has a full-width colon '：' behind a name: write ':' and a space")
	case node.Kind != yaml.MappingNode:
		d.refuse(node, path, "use a mapping of names to values, such as {name: value}")
	case kind == reflect.Map:
		d.decodeMap(node, into, path)
	case kind == reflect.Struct:
		d.decodeStruct(node, into, path)
	default:
		d.refuse(node, path, "cannot be set in a config file: remove it")
	}
}

func (d *decoder) isText(node *yaml.Node, path string) bool {
	switch {
	case node.Kind != yaml.ScalarNode:
		d.refuse(node, path, "use a text")
	case node.Tag != "!!str":
		d.refuse(node, path, "is a number, date or truth value to YAML: put it in quotes to make it a text")
	default:
		return true
	}
	return false
}

func (d *decoder) decodeNumber(node *yaml.Node, into reflect.Value, path string) {
	var number int64
	switch {
	case node.Kind != yaml.ScalarNode || node.Tag != "!!int":
		d.refuse(node, path, "use a whole number, without quotes")
	case node.Decode(&number) != nil || into.OverflowInt(number):
		d.refuse(node, path, "is a number out of range")
	case number == 0:
		// To spec, zero is a number that was left out: taking it would mean to set the default in silence.
		d.refuse(node, path, "cannot be 0: remove it for its default, or use another number")
	default:
		into.SetInt(number)
	}
}

// decodeMap is for map[string]string, the only maps there are.
func (d *decoder) decodeMap(node *yaml.Node, into reflect.Value, path string) {
	into.Set(reflect.MakeMap(into.Type()))
	for i := 0; i+1 < len(node.Content); i += 2 {
		key, value := node.Content[i].Value, node.Content[i+1]
		at := fmt.Sprintf("%s[%s]", path, key)
		item := reflect.New(into.Type().Elem()).Elem()
		d.decode(value, item, at)
		into.SetMapIndex(reflect.ValueOf(key), item)
	}
}

func (d *decoder) decodeStruct(node *yaml.Node, into reflect.Value, path string) {
	fields := fieldsOf(into.Type())
	for i := 0; i+1 < len(node.Content); i += 2 {
		key, value := node.Content[i], node.Content[i+1]
		index, found := fields[key.Value]
		if !found {
			d.refuseUnknown(key, value, path, d.places[node].path)
			continue
		}
		d.decode(value, into.FieldByIndex(index), joinField(path, key.Value))
	}
}

// fieldsOf are the fields that a config file may set, by their JSON names.
func fieldsOf(of reflect.Type) map[string][]int {
	fields := map[string][]int{}
	for _, field := range reflect.VisibleFields(of) {
		name, _, _ := strings.Cut(field.Tag.Get("json"), ",")
		if field.IsExported() && name != "" && field.Tag.Get("config") != "-" {
			fields[name] = field.Index
		}
	}
	return fields
}

func joinField(path, name string) string {
	if path == "" {
		return name
	}
	return path + "." + name
}

// refuseUnknown refuses a field that does not exist, with the name that was probably meant. Below a name that is known
// although no Go type has it, such as storage, it is the names below it that are unknown.
func (d *decoder) refuseUnknown(key, value *yaml.Node, path, written string) {
	full := joinField(path, key.Value)
	if len(d.namesBelow(full)) > 0 {
		switch {
		case value.Kind == yaml.MappingNode:
			for i := 0; i+1 < len(value.Content); i += 2 {
				d.refuseUnknown(value.Content[i], value.Content[i+1], full, d.places[value].path)
			}
		case !isOff(value):
			d.refuse(value, full, "use a mapping of names to values, such as {name: value}")
		}
		return
	}
	text := "unknown field"
	switch other := nearest(key.Value, d.namesBelow(path)); {
	case strings.Contains(key.Value, "："):
		text = "has a full-width colon '：' behind a name: write ':' and a space"
	case !plainName.MatchString(key.Value):
		text = "a name here is not one of a field (is a colon or quote missing?): the fields are " + strings.Join(d.namesBelow(path), ", ")
	case other != "":
		text += ": did you mean " + joinField(written, other) + "?"
	default:
		if elsewhere := d.elsewhere(key.Value); elsewhere != "" {
			text += ": did you mean " + elsewhere + "?"
		} else if names := d.namesBelow(path); len(names) > 0 {
			text += ": the fields here are " + strings.Join(names, ", ")
		}
	}
	d.refused[full] = true
	d.refuseAt(join(written, key.Value), key.Line, "%s", text)
}

var listIndex = regexp.MustCompile(`\[[0-9]+\]`)

// namesBelow are the known names of the fields directly below a path.
func (d *decoder) namesBelow(path string) []string {
	prefix := listIndex.ReplaceAllString(path, "[]") + "."
	if path == "" {
		prefix = ""
	}
	var names []string
	for _, known := range d.known {
		if rest, found := strings.CutPrefix(known, prefix); found {
			name, _, _ := strings.Cut(rest, ".")
			if name = strings.TrimSuffix(name, "[]"); !slices.Contains(names, name) {
				names = append(names, name)
			}
		}
	}
	return names
}

// elsewhere is the path of the only field of this name, wherever it is.
func (d *decoder) elsewhere(name string) string {
	var found []string
	for _, known := range d.known {
		if last := known[strings.LastIndex(known, ".")+1:]; strings.EqualFold(strings.TrimSuffix(last, "[]"), name) {
			found = append(found, strings.TrimSuffix(known, "[]"))
		}
	}
	if len(found) != 1 {
		return ""
	}
	return found[0]
}

// knownPaths are the paths of all fields of a type, those that hold others included.
func knownPaths(of reflect.Type, path string) []string {
	var paths []string
	for name, index := range fieldsOf(of) {
		field, at := of.FieldByIndex(index).Type, joinField(path, name)
		if field.Kind() == reflect.Slice {
			field, at = field.Elem(), at+"[]"
		}
		paths = append(paths, at)
		if field.Kind() == reflect.Struct && field != secretType {
			paths = append(paths, knownPaths(field, at)...)
		}
	}
	slices.Sort(paths)
	return paths
}
