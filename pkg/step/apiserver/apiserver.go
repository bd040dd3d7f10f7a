// Copyright 2026 The cluster-api-provider-kubexm Authors.
// SPDX-License-Identifier: Apache-2.0

// Package apiserver holds what kube-apiserver reads besides certificates, however it is run: its audit policy, the
// configuration of admission plugins, and what it encrypts with; and the flags that go with them.
package apiserver

import (
	"crypto/sha256"
	_ "embed"
	"encoding/hex"
	"path"
	"slices"
	"strconv"
	"strings"

	"sigs.k8s.io/yaml"

	"github.com/mensylisir/cluster-api-provider-kubexm/pkg/spec"
	"github.com/mensylisir/cluster-api-provider-kubexm/pkg/step"
)

const (
	// Dir has the files that kube-apiserver reads.
	Dir = "/etc/kubernetes/apiserver"
	// AuditDir has the audit log that it writes.
	AuditDir = "/var/log/kubernetes/audit"
)

//go:embed audit.yaml
var auditPolicy string

// file is one that kube-apiserver reads when it starts. A part of its content's digest is in its name: one that runs goes on
// with the file that it was started with, and is restarted with another by whatever changes its flags.
type file struct{ path, content string }

func newFile(name, content string) file {
	sum := sha256.Sum256([]byte(content))
	return file{path.Join(Dir, name+"-"+hex.EncodeToString(sum[:4])+".yaml"), content}
}

// Files writes what kube-apiserver reads, and makes the directory of its audit log. The log outlives a reset, as other logs do.
func Files(k spec.Kubernetes) step.Step {
	parts := []step.Step{step.Directory{Path: Dir, Mode: 0o700}}
	for _, f := range files(k) {
		parts = append(parts, step.File{Path: f.path, Mode: 0o600, Content: step.Literal(f.content)})
	}
	if k.APIServer.Audit.IsOn() {
		parts = append(parts, step.Directory{Path: AuditDir, Mode: 0o700})
	}
	return step.New(step.Meta{Name: "apiserver/files", Description: "write the API server's policies"}, parts...)
}

func files(k spec.Kubernetes) []file {
	var all []file
	if k.APIServer.Audit.IsOn() {
		all = append(all, audit(k.APIServer.Audit))
	}
	if k.PodSecurity.Restricts() {
		all = append(all, admission(k.PodSecurity))
	}
	return all
}

// Args are the flags for the files, by their names.
func Args(k spec.Kubernetes) []spec.Arg {
	var args []spec.Arg
	if k.PodSecurity.Restricts() {
		args = append(args, spec.Arg{Name: "admission-control-config-file", Value: admission(k.PodSecurity).path})
	}
	if a := k.APIServer.Audit; a.IsOn() {
		args = append(args,
			spec.Arg{Name: "audit-log-maxage", Value: strconv.Itoa(int(a.MaxAgeDays))},
			spec.Arg{Name: "audit-log-maxbackup", Value: strconv.Itoa(int(a.MaxBackups))},
			spec.Arg{Name: "audit-log-maxsize", Value: strconv.Itoa(int(a.MaxSizeMegabytes))},
			spec.Arg{Name: "audit-log-path", Value: path.Join(AuditDir, "audit.log")},
			spec.Arg{Name: "audit-policy-file", Value: audit(a).path})
	}
	if k.EncryptionAtRest.IsOn() {
		args = append(args, spec.Arg{Name: "encryption-provider-config", Value: EncryptionConfig})
	}
	return args
}

// audit is the user's policy, or the one that follows from the level.
func audit(a spec.Audit) file {
	if a.Policy != "" {
		return newFile("audit", a.Policy)
	}
	return newFile("audit", strings.ReplaceAll(auditPolicy, "LEVEL", string(a.Level)))
}

// admission is apiserver.config.k8s.io/v1. What the cluster itself consists of is exempt.
func admission(p spec.PodSecurity) file {
	type object map[string]any
	levels := object{}
	for mode, level := range map[string]spec.PodSecurityLevel{"enforce": p.Enforce, "audit": p.Audit, "warn": p.Warn} {
		levels[mode], levels[mode+"-version"] = level, "latest"
	}
	// Strings, lists and maps of them always marshal.
	text, _ := yaml.Marshal(object{
		"apiVersion": "apiserver.config.k8s.io/v1", "kind": "AdmissionConfiguration",
		"plugins": []object{{"name": "PodSecurity", "configuration": object{
			"apiVersion": "pod-security.admission.config.k8s.io/v1", "kind": "PodSecurityConfiguration", "defaults": levels,
			"exemptions": object{"namespaces": slices.Concat([]string{"kube-system"}, p.ExemptNamespaces)},
		}}},
	})
	return newFile("admission", string(text))
}
