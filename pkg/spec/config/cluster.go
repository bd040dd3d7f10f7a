// Copyright 2026 The cluster-api-provider-kubexm Authors.
// SPDX-License-Identifier: Apache-2.0

package config

import (
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"reflect"
	"regexp"
	"slices"
	"strings"

	"k8s.io/apimachinery/pkg/util/validation/field"

	"github.com/mensylisir/cluster-api-provider-kubexm/pkg/secret"
	"github.com/mensylisir/cluster-api-provider-kubexm/pkg/spec"
)

const (
	apiVersion = "kubexm.mensylisir.io/v1alpha1"
	kind       = "Cluster"
)

// Cluster is what a config file says, with defaults and valid.
type Cluster struct {
	// Name is the cluster's name, a DNS label.
	Name string `json:"name"`
	// KubernetesVersion is such as v1.36.3.
	KubernetesVersion string `json:"kubernetesVersion"`
	// Spec is what all hosts share.
	Spec spec.Cluster `json:"spec"`
	// Hosts are in the order of the file.
	Hosts []Host `json:"hosts"`
	// EtcdFiles are for an external etcd that is reached by TLS.
	EtcdFiles EtcdFiles `json:"etcdFiles,omitzero"`
}

// file is the form of a config file once aliases are resolved.
type file struct {
	APIVersion string `json:"apiVersion"`
	Kind       string `json:"kind"`
	Metadata   struct {
		Name string `json:"name"`
	} `json:"metadata"`
	Spec struct {
		Hosts        []Host     `json:"hosts"`
		ProxyJump    ProxyJump  `json:"proxyJump"`
		RoleGroups   roleGroups `json:"roleGroups"`
		spec.Cluster `json:",inline"`
	} `json:"spec"`
}

// Keys says why nobody can log in at a host as a user with what OpenSSH has on this machine, nil if it has something to try.
type Keys func(address string, port int32, user string) error

// Load reads the config file at path, with what concerns this machine: the keys that it names must be there, a ~ in their
// paths is the user's home, and of hosts and jump hosts with neither password nor key it asks keys, unless that is nil. Relative paths
// in the file are relative to the working directory. The error is an *Error, or that of reading the file; warnings come with both.
func Load(path string, keys Keys) (cluster *Cluster, warnings []Problem, err error) {
	info, err := os.Stat(path)
	if err != nil {
		return nil, nil, fmt.Errorf("config file: %w", err)
	}
	if info.Mode().IsRegular() && info.Size() > maxSize {
		return nil, nil, &Error{[]Problem{{File: path, Text: tooLarge(info.Size())}}}
	}
	data, err := os.ReadFile(path)
	if err != nil {
		return nil, nil, fmt.Errorf("config file: %w", err)
	}
	r := read(data)
	if r.cluster != nil {
		r.checkAccess(info, keys)
	}
	for _, problems := range [][]Problem{r.problems, r.warnings} {
		for i := range problems {
			problems[i].File = path
		}
	}
	return r.result()
}

// Parse reads a config file's content. It looks at nothing else: neither keys nor the environment. The error is an *Error.
func Parse(data []byte) (cluster *Cluster, warnings []Problem, err error) {
	return read(data).result()
}

// reading is a config file that has been read as far as it can be.
type reading struct {
	*tree
	cluster  *Cluster // nil if there was nothing to read
	warnings []Problem
	jumps    jumps
}

func (r *reading) result() (*Cluster, []Problem, error) {
	if len(r.problems) > 0 {
		return nil, inOrder(r.warnings), &Error{inOrder(r.problems)}
	}
	return r.cluster, inOrder(r.warnings), nil
}

func read(data []byte) *reading {
	r := &reading{tree: parseTree(data)}
	if r.root == nil {
		return r
	}
	var version string
	var files EtcdFiles
	if body := child(r.root, "spec"); body != nil {
		r.refuseOtherRuntimes(body)
		r.resolveAliases(body)
		r.refuseUnsupported(body)
		r.resolveWords(body)
		r.resolveLoadBalancer(body)
		version = r.takeText("spec", "kubernetes", "version")
		files = r.takeEtcdFiles()
	}
	var content file
	d := &decoder{tree: r.tree, known: knownFields()}
	d.decode(r.root, reflect.ValueOf(&content).Elem(), "")

	r.cluster = &Cluster{
		Name: content.Metadata.Name, KubernetesVersion: version, Spec: content.Spec.Cluster, Hosts: content.Spec.Hosts, EtcdFiles: files,
	}
	r.assignRoles(content.Spec.RoleGroups)
	r.nameEtcdSecret()
	r.cluster.Spec.Kubernetes.EncryptByDefault()
	r.cluster.Spec.Default()
	for i := range r.cluster.Hosts {
		r.cluster.Hosts[i].setDefaults()
	}

	r.validateHeader(&content)
	body := field.NewPath("spec")
	r.report(spec.ValidateClusterName(r.cluster.Name, field.NewPath("metadata", "name")))
	r.report(spec.ValidateVersion(version, body.Child("kubernetes", "version")))
	r.report(r.cluster.Spec.Validate(body))
	r.report(r.cluster.validateHosts(body.Child("hosts")))
	r.resolveJumps(content.Spec.ProxyJump)
	r.report(r.cluster.validateGroups(field.NewPath("spec", "roleGroups")))
	r.report(r.cluster.validateEndpoint(body.Child("controlPlaneEndpoint")))
	r.warnOfLabels()
	return r
}

// takeText takes a text that is not a part of spec.Cluster out of the tree, such as the version of Kubernetes, which is a
// machine's.
func (r *reading) takeText(path ...string) string {
	node := take(r.root, path)
	if node == nil {
		return ""
	}
	var text string
	d := &decoder{tree: r.tree}
	d.decode(node, reflect.ValueOf(&text).Elem(), strings.Join(path, "."))
	return text
}

// knownFields are the paths of all fields that a config file may have, or may have in another version.
func knownFields() []string {
	known := append(knownPaths(reflect.TypeFor[file](), ""), "spec.kubernetes.version")
	known = slices.DeleteFunc(known, func(path string) bool { return strings.HasPrefix(path, "spec.loadBalancer") })
	for _, name := range balancerFields() {
		known = append(known, "spec.controlPlaneEndpoint."+name)
	}
	for _, name := range etcdFileNames() {
		known = append(known, etcdPath+"."+name)
	}
	for _, row := range aliases {
		if path := "spec." + row.from; !slices.Contains(known, path) && !slices.Contains(known, path+"[]") {
			known = append(known, path)
		}
	}
	for _, row := range unsupported {
		known = append(known, "spec."+row.path)
	}
	return known
}

func (r *reading) validateHeader(content *file) {
	for _, header := range []struct{ name, is, must string }{{"apiVersion", content.APIVersion, apiVersion}, {"kind", content.Kind, kind}} {
		if header.is != header.must {
			r.report(field.ErrorList{field.NotSupported(field.NewPath(header.name), header.is, []string{header.must})})
		}
	}
}

// fieldPath is a field's path in an error's text.
var fieldPath = regexp.MustCompile(`\bspec(\.[A-Za-z-]+|\[[0-9]+\])+`)

// report records errors of fields, as the file spells them. What follows from a problem known already is left out.
func (r *reading) report(errs field.ErrorList) {
	for _, err := range errs {
		if r.isRefused(err.Field) {
			continue
		}
		at := r.placeOf(err.Field)
		text := fieldPath.ReplaceAllStringFunc(err.ErrorBody(), func(path string) string { return r.placeOf(path).path })
		r.refuseAt(at.path, at.line, "%s", inWords(text))
	}
}

// isRefused reports whether a problem is known of the field at a path in the Go types, or of one around it.
func (r *reading) isRefused(path string) bool {
	for ; path != ""; path, _ = splitPath(path) {
		if r.refused[path] {
			return true
		}
	}
	return false
}

// placeOf is where the field at a path in the Go types was written, or would have been.
func (r *reading) placeOf(path string) place {
	rest := ""
	for around := path; around != ""; {
		if at, found := r.decoded[around]; found {
			return place{path: at.path + rest, line: at.line}
		}
		shorter, last := splitPath(around)
		around, rest = shorter, last+rest
	}
	return place{path: path}
}

// splitPath splits the last step off a path: ".name" or "[index]".
func splitPath(path string) (around, last string) {
	i := max(strings.LastIndexAny(path, ".["), 0)
	return path[:i], path[i:]
}

func tooLarge(size int64) string {
	return fmt.Sprintf("has %d bytes: a config file has at most %d", size, maxSize)
}

// login is how a machine is logged in to.
type login struct {
	address  string
	port     int32
	user     string
	password secret.Value
	key      *string // the path of the private key's file
}

// checkAccess checks, against this machine, how hosts and an external etcd are reached.
func (r *reading) checkAccess(info os.FileInfo, keys Keys) {
	r.checkEtcdFiles()
	warn := info.Mode().Perm()&0o044 != 0 // once, for the first password
	check := func(path string, l login) {
		if at := r.placeOf(path + ".password"); warn && !l.password.IsZero() {
			warn = false
			r.warnings = append(r.warnings, Problem{Path: at.path, Line: at.line,
				Text: fmt.Sprintf("the file holds passwords and others may read it (mode %04o): run chmod 600 on it, or use keys", info.Mode().Perm())})
		}
		if at := r.placeOf(path + ".privateKeyPath"); *l.key != "" {
			var err error
			if *l.key, err = findFile(*l.key); err != nil {
				r.refuseAt(at.path, at.line, "the key cannot be used: %v", err)
			}
			return
		}
		if l.address == "" || !l.password.IsZero() || keys == nil || r.isRefused(path) {
			return
		}
		if err := keys(l.address, l.port, l.user); err != nil {
			at := r.placeOf(path)
			r.refuseAt(at.path, at.line, "has neither password nor privateKeyPath, and %v", err)
		}
	}
	for i := range r.cluster.Hosts {
		check(fmt.Sprintf("spec.hosts[%d]", i), r.cluster.Hosts[i].login())
	}
	r.checkJumps(check)
}

// findFile resolves the path of a file with a key or certificate, and looks whether it is there.
func findFile(path string) (string, error) {
	if rest, isHome := strings.CutPrefix(path, "~/"); isHome {
		home, err := os.UserHomeDir()
		if err != nil {
			return path, err
		}
		path = filepath.Join(home, rest)
	}
	info, err := os.Stat(path)
	switch {
	case err != nil:
		return path, err
	case !info.Mode().IsRegular():
		return path, fmt.Errorf("%s is not a regular file", path)
	case info.Size() > maxKeySize:
		return path, errors.New("it is too large for a key or certificate")
	}
	return path, nil
}

// maxKeySize is how many bytes a file with a key or certificate may have.
const maxKeySize = 64 << 10
