// Copyright 2026 The cluster-api-provider-kubexm Authors.
// SPDX-License-Identifier: Apache-2.0

package reconcilers

import (
	"fmt"
	"maps"
	"os"
	"path/filepath"
	"reflect"
	"regexp"
	"slices"
	"strings"
	"testing"

	"github.com/go-logr/logr"
	ctrl "sigs.k8s.io/controller-runtime"
	"sigs.k8s.io/controller-runtime/pkg/client"
)

// TestEveryFieldHasAnEffect: what the API takes is done, or it is refused. Each field of each of our kinds is changed, cleared and set
// anew, and each list and map gets and loses an item, in objects that are admitted by the webhooks themselves. Such a change must be
//
//   - refused, with the path of the field, or
//   - followed: the plan of at least one host has a step, or a part of one, that it did not have, and nothing that it had on the host is
//     let go of: what a step that is gone did would stay there, or
//   - somebody else's to read than plans: then it is in the list elsewhere, which is true of nothing that plans depend on.
func TestEveryFieldHasAnEffect(t *testing.T) {
	ctrl.SetLogger(logr.Discard())
	f := &fields{
		webhooks: serveWebhooks(t), kinds: map[string][]string{}, seen: map[string]bool{},
		read: map[string]bool{}, partly: map[string][2]bool{},
	}
	all := subjects(t)
	for _, s := range all {
		if kind := s.kind(); f.kinds[kind] == nil {
			f.kinds[kind] = leavesOf(reflect.TypeOf(s.object).Elem(), kind)
		}
	}
	for _, kind := range registered(t) {
		if f.kinds[kind] == nil {
			t.Errorf("%s: no object of this kind is checked: add one to subjects", kind)
		}
	}
	for _, s := range all {
		t.Run(s.kind()+"/"+s.name, func(t *testing.T) {
			if refused := f.webhooks.admit(t, nil, s.object); len(refused) > 0 {
				t.Fatalf("the object itself is refused: %v", refused)
			}
			before := s.follow(t, s.object)
			for _, c := range changesOf(s.object, s.kind()) {
				f.judge(t, s, before, c)
			}
		})
	}
	f.conclude(t)
}

// fields is what was found so far.
type fields struct {
	webhooks *webhookMux
	// kinds are the leaves of each kind, by its type.
	kinds map[string][]string
	// seen are the leaves that were changed to another valid value; read are entries of elsewhere that were true of one.
	seen, read map[string]bool
	// partly are entries of sometimes: whether they were planned for, and whether not.
	partly map[string][2]bool
	// last is the object that was followed last, and print what came of it: what is done and undone is the same object.
	last  client.Object
	print footprint
	// asked is the object whose creation was asked for last, and admitted whether that is admitted.
	asked    client.Object
	admitted bool
}

// isAdmitted reports whether an object can be created. The object is not changed any more.
func (f *fields) isAdmitted(t *testing.T, object client.Object) bool {
	t.Helper()
	if f.asked != object {
		f.asked, f.admitted = object, f.webhooks.admit(t, nil, object) == nil
	}
	return f.admitted
}

// footprintOf is what comes of an object of a subject. The object is not changed any more.
func (f *fields) footprintOf(t *testing.T, s subject, object client.Object) footprint {
	t.Helper()
	if f.last != object {
		f.last, f.print = object, s.follow(t, object)
	}
	return f.print
}

// judge makes one change of an object, and wants it refused, followed, or read elsewhere.
func (f *fields) judge(t *testing.T, s subject, before footprint, c change) {
	t.Helper()
	for _, other := range []client.Object{c.from, c.to} {
		if other != s.object && !f.isAdmitted(t, other) {
			return // nobody can have it so
		}
	}
	f.seen[c.path] = f.seen[c.path] || c.what != "clear" && c.what != "set"
	if refused := f.webhooks.admit(t, c.from, c.to); len(refused) > 0 {
		if !slices.ContainsFunc(refused, func(r refusal) bool { return r.isAbout(c.path) && r.message != "" }) {
			t.Errorf("%s (%s): it is refused without the field being named: %v", c.path, c.what, refused)
		}
		return
	}
	from, to := before, before
	if c.from != s.object {
		from = f.footprintOf(t, s, c.from)
	}
	if c.to != s.object {
		to = f.footprintOf(t, s, c.to)
	}
	gained, lost, left := minus(to.parts, from.parts), minus(from.parts, to.parts), minus(from.resources, to.resources)
	_, entry := find(elsewhere, c.path)
	_, at := find(sometimes, c.path)
	if at != "" {
		f.partly[at] = [2]bool{f.partly[at][0] || len(gained) > 0, f.partly[at][1] || len(gained) == 0}
	}
	_, may := find(letGo, c.path)
	switch {
	case entry != "" && len(gained)+len(lost) > 0:
		t.Errorf("%s (%s): plans depend on it, so it does not belong into the list elsewhere:\n  + %s", c.path, c.what, strings.Join(gained, "\n  + "))
	case entry != "":
		f.read[entry] = true
	case len(left) > 0 && may == "" && !from.unplanned && !to.unplanned:
		t.Errorf("%s (%s): it is accepted, and this stays on the host: %v", c.path, c.what, left)
	case len(gained) > 0 || at != "":
	case len(lost) > 0:
		t.Errorf("%s (%s): it is accepted, and what it did stays on the host: nothing but this changes in plans:\n  - %s",
			c.path, c.what, strings.Join(lost, "\n  - "))
	default:
		t.Errorf("%s (%s): it is accepted, and no plan depends on it", c.path, c.what)
	}
}

// find finds a field, or what it is in, in a list.
func find(list map[string]string, path string) (value, entry string) {
	for at := path; at != ""; at = parent(at) {
		if value, found := list[at]; found {
			return value, at
		}
	}
	return "", ""
}

// parent is the field that a field is in, "" of a kind.
func parent(path string) string {
	return path[:max(0, strings.LastIndexAny(path, ".[{"))]
}

// conclude wants all fields to have been changed, and the lists to be true.
func (f *fields) conclude(t *testing.T) {
	for _, kind := range slices.Sorted(maps.Keys(f.kinds)) {
		for _, path := range f.kinds[kind] {
			why, never := find(neverSet, path)
			if !f.seen[path] && never == "" {
				t.Errorf("%s: no object lets it be changed to a valid value: give one in values, or an object that has it in subjects", path)
			}
			if f.seen[path] && never != "" {
				t.Errorf("%s: it can be changed, so it does not belong into the list neverSet: %s", path, why)
			}
		}
	}
	for _, list := range []map[string]string{elsewhere, sometimes, letGo, neverSet} {
		for _, path := range slices.Sorted(maps.Keys(list)) {
			kind, _, _ := strings.Cut(path, ".")
			if !slices.ContainsFunc(f.kinds[kind], func(leaf string) bool { return isWithin(leaf, path) }) {
				t.Errorf("there is no field %s any more: take it off the list", path)
			}
			file, text, found := strings.Cut(list[path], ": ")
			raw, err := os.ReadFile(filepath.Join("..", "..", file))
			if !found || err != nil || !strings.Contains(string(raw), text) {
				t.Errorf("%s is said to be read by %q, which is not there (%v)", path, list[path], err)
			}
		}
	}
	for path := range elsewhere {
		if !f.read[path] {
			t.Errorf("elsewhere: no change of %s was accepted that no plan depends on", path)
		}
	}
	for path := range sometimes {
		if f.partly[path] != [2]bool{true, true} {
			t.Errorf("sometimes: a change of %s was planned for: %v, and was not: %v", path, f.partly[path][0], f.partly[path][1])
		}
	}
}

func isWithin(leaf, path string) bool {
	rest, found := strings.CutPrefix(leaf, path)
	return found && (rest == "" || strings.ContainsAny(rest[:1], ".[{"))
}

// change is an object before and after, which differ in one field.
type change struct {
	path, what string
	from, to   client.Object
}

// isOneValue reports whether a type is one value to us, whatever is in it.
func isOneValue(t reflect.Type) bool {
	switch t.String() {
	case "v1.Time", "v1.LabelSelector", "resource.Quantity":
		return true
	}
	return t.Kind() != reflect.Struct
}

// leavesOf are the paths of all that can be changed in the spec of a type of objects: items of a list are [] and those of a map {}.
func leavesOf(t reflect.Type, kind string) []string {
	spec, found := t.FieldByName("Spec")
	if !found {
		return nil
	}
	var leaves []string
	var walk func(t reflect.Type, path string)
	walk = func(t reflect.Type, path string) {
		if t.Kind() == reflect.Pointer {
			t = t.Elem()
		}
		switch {
		case t.Kind() == reflect.Slice:
			leaves = append(leaves, path+"[]")
			if !isOneValue(t.Elem()) {
				walk(t.Elem(), path+"[]")
			}
		case t.Kind() == reflect.Map:
			leaves = append(leaves, path+"{}")
		case isOneValue(t):
			leaves = append(leaves, path)
		default:
			for i := range t.NumField() {
				walk(t.Field(i).Type, path+nameOf(t.Field(i)))
			}
		}
	}
	walk(spec.Type, kind+".spec")
	return leaves
}

// nameOf is what a field adds to a path: nothing where it is inlined.
func nameOf(f reflect.StructField) string {
	name, options, _ := strings.Cut(f.Tag.Get("json"), ",")
	if strings.Contains(options, "inline") {
		return ""
	}
	return "." + name
}

// changesOf are the changes of what an object has: each field to another value, and from and to none; each list and map by an item.
func changesOf(object client.Object, kind string) []change {
	var all []change
	// with is the object with something done at a place in its spec.
	with := func(at func(reflect.Value) reflect.Value, do func(reflect.Value)) client.Object {
		other := object.DeepCopyObject().(client.Object)
		do(at(reflect.ValueOf(other).Elem().FieldByName("Spec")))
		return other
	}
	both := func(path, there, back string, other client.Object) {
		all = append(all, change{path, there, object, other}, change{path, back, other, object})
	}
	zero := func(v reflect.Value) { v.SetZero() }
	var walk func(v reflect.Value, path string, at func(reflect.Value) reflect.Value)
	walk = func(v reflect.Value, path string, at func(reflect.Value) reflect.Value) {
		switch t := v.Type(); {
		case t.Kind() == reflect.Slice:
			n := v.Len()
			if n == 0 {
				return
			}
			both(path+"[]", "remove", "add", with(at, func(v reflect.Value) {
				if v.SetLen(n - 1); n == 1 {
					v.SetZero()
				}
			}))
			last := func(v reflect.Value) reflect.Value { return at(v).Index(n - 1) }
			if isOneValue(t.Elem()) {
				both(path+"[]", "change", "change back", with(last, func(v reflect.Value) { another(path+"[]", v) }))
			} else {
				walk(v.Index(n-1), path+"[]", last)
			}
		case t.Kind() == reflect.Map:
			if v.Len() == 0 {
				return
			}
			key := slices.SortedFunc(slices.Values(v.MapKeys()), func(a, b reflect.Value) int {
				return strings.Compare(a.String(), b.String())
			})[0]
			both(path+"{}", "remove", "add", with(at, func(v reflect.Value) {
				if v.SetMapIndex(key, reflect.Value{}); v.Len() == 0 {
					v.SetZero()
				}
			}))
			both(path+"{}", "change", "change back", with(at, func(v reflect.Value) {
				value := reflect.New(t.Elem()).Elem()
				value.Set(v.MapIndex(key))
				another(path+"{}", value)
				v.SetMapIndex(key, value)
			}))
		case t.Kind() == reflect.Pointer || isOneValue(t):
			if v.IsZero() {
				return
			}
			both(path, "clear", "set", with(at, zero))
			both(path, "change", "change back", with(at, func(v reflect.Value) { another(path, v) }))
		default:
			for i := range t.NumField() {
				walk(v.Field(i), path+nameOf(t.Field(i)), func(v reflect.Value) reflect.Value { return at(v).Field(i) })
			}
		}
	}
	walk(reflect.ValueOf(object).Elem().FieldByName("Spec"), kind+".spec", func(v reflect.Value) reflect.Value { return v })
	return all
}

// another gives a field a value other than it has: one of values, another number, or a longer text.
func another(path string, v reflect.Value) {
	if v.Kind() == reflect.Pointer {
		v = v.Elem()
	}
	for _, known := range values {
		if !known.path.MatchString(path) {
			continue
		}
		for _, value := range known.values {
			if next := reflect.ValueOf(value).Convert(v.Type()); !reflect.DeepEqual(next.Interface(), v.Interface()) {
				v.Set(next)
				return
			}
		}
	}
	switch v.Kind() {
	case reflect.String:
		v.SetString(v.String() + "x")
	case reflect.Int32, reflect.Int64:
		v.SetInt(v.Int() + 1)
	case reflect.Bool:
		v.SetBool(!v.Bool())
	}
}

// refusal is a field that admission refuses, and why.
type refusal struct{ field, message string }

func (r refusal) String() string { return r.field + ": " + r.message }

var index = regexp.MustCompile(`\[[^]]*\]`)

// isAbout reports whether the field is the one of the path, is in it, or has it in it.
func (r refusal) isAbout(path string) bool {
	_, path, _ = strings.Cut(path, ".")
	plain := strings.NewReplacer("[]", "", "{}", "").Replace(path)
	named := index.ReplaceAllString(r.field, "")
	return named == plain || strings.HasPrefix(plain, named+".") || strings.HasPrefix(named, plain+".")
}

// footprint is all that plans want of hosts: parts of steps with where they are, how steps are bounded, and what they keep on the host.
// Where no plan could be made, parts say why.
type footprint struct {
	parts, resources map[string]bool
	unplanned        bool
}

func (f *footprint) merge(other footprint) {
	maps.Copy(f.parts, other.parts)
	maps.Copy(f.resources, other.resources)
	f.unplanned = f.unplanned || other.unplanned
}

func emptyFootprint() footprint {
	return footprint{parts: map[string]bool{}, resources: map[string]bool{}}
}

// minus are at most three that the one has and the other does not, shortened.
func minus(one, other map[string]bool) []string {
	var more []string
	for _, item := range slices.Sorted(maps.Keys(one)) {
		if !other[item] && len(more) < 3 {
			more = append(more, fmt.Sprintf("%.300s", item))
		}
	}
	return more
}

// registered are the names of all our kinds that have a spec.
func registered(t *testing.T) []string {
	t.Helper()
	var names []string
	for kind, of := range testScheme(t).AllKnownTypes() {
		if _, found := of.FieldByName("Spec"); found && strings.HasPrefix(kind.Kind, "Kubexm") {
			names = append(names, kind.Kind)
		}
	}
	slices.Sort(names)
	return names
}

// subject is an object whose fields are checked, and what follows from it on hosts.
type subject struct {
	name   string
	object client.Object
	follow func(t *testing.T, object client.Object) footprint
}

func (s subject) kind() string { return reflect.TypeOf(s.object).Elem().Name() }
