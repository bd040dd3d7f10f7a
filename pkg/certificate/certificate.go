// Copyright 2026 The cluster-api-provider-kubexm Authors.
// SPDX-License-Identifier: Apache-2.0

// Package certificate finds the certificates on a host, no matter who made them, and reads when they end:
//
//	Query()      what the host is asked, beside whatever else is asked in that exchange
//	In(facts)    the files with certificates that it has
//
// It sees files alone: a certificate that no plan speaks of any more ends like any other. No key leaves the host.
package certificate

import (
	"bytes"
	"crypto/x509"
	_ "embed"
	"encoding/pem"
	"errors"
	"fmt"
	"path"
	"slices"
	"strings"
	"time"

	"github.com/mensylisir/cluster-api-provider-kubexm/pkg/host"
)

// File is a file with a certificate, or one that should have one. Of several in one file, such as a chain, the first to end
// counts.
type File struct {
	// Path is absolute.
	Path string `json:"path,omitempty"`
	// Subject is the common name. Authority says that it signs others.
	Subject   string `json:"subject,omitempty"`
	Authority bool   `json:"authority,omitempty"`
	// NotAfter is when it ends, in UTC.
	NotAfter time.Time `json:"notAfter,omitzero"`
	// Message is why it cannot be read: then nothing but Path is known. It is "" when it can be.
	Message string `json:"message,omitempty"`
}

const (
	kubeletDir  = "/var/lib/kubelet/pki"
	kubeletConf = "/etc/kubernetes/kubelet.conf"
)

// places are where certificates are, no matter who made them: directories with those in them, and kubeconfigs that may hold one.
func places() []string {
	return []string{
		"/etc/kubernetes/pki", kubeletDir, "/etc/kubexm/etcd/ssl",
		"/etc/kubernetes/admin.conf", "/etc/kubernetes/super-admin.conf", "/etc/kubernetes/controller-manager.conf",
		"/etc/kubernetes/scheduler.conf", kubeletConf, "/etc/kubernetes/kube-proxy.conf",
	}
}

// InKubeletsPlace reports whether the file is where the kubelet keeps what it is known by: it makes that itself, and renews it, where
// nobody else does.
func (f File) InKubeletsPlace() bool { return path.Dir(f.Path) == kubeletDir || f.Path == kubeletConf }

//go:embed look.sh
var look string

// answer names that of the script.
const answer = "certificates"

// Query asks a host for all certificates that it has, and for nothing of its keys.
func Query() host.Query {
	return host.Query{Commands: []host.CommandQuery{{ID: answer, Argv: append([]string{"/bin/sh", "-c", look, "sh"}, places()...)}}}
}

// In are the files of a host that was asked Query, by their paths. The error says that they are not all, or that it was not asked;
// a file that cannot be read is none.
func In(facts *host.Facts) ([]File, error) {
	result, asked := facts.Commands[answer]
	files := parse(string(result.Stdout))
	switch {
	case !asked:
		return nil, errors.New("the host was not asked for its certificates")
	case result.Stopped > 0:
		return files, fmt.Errorf("not all could be read: that did not end within %s and was stopped", result.Stopped)
	case result.ExitCode != 0:
		return files, fmt.Errorf("not all could be read, exit code %d: %s", result.ExitCode, bytes.TrimSpace(result.Stderr))
	case len(result.Stdout) >= host.MaxContent:
		return files, fmt.Errorf("not all could be read: there are more than %d bytes of them", host.MaxContent)
	}
	return files, nil
}

// parse reads what the script prints. Files without a certificate, such as keys, are passed over.
func parse(text string) []File {
	var all []File
	for part := range strings.SplitSeq("\n"+text, "\n# ") {
		name, content, _ := strings.Cut(part, "\n")
		// Of kubeconfigs there are only those that should have one.
		if name == "" || strings.TrimSpace(content) == "" && path.Ext(name) != ".conf" {
			continue
		}
		all = append(all, read(name, []byte(content)))
	}
	slices.SortFunc(all, func(a, b File) int { return strings.Compare(a.Path, b.Path) })
	return all
}

// read is the file with this content.
func read(name string, content []byte) File {
	f := File{Path: name}
	for {
		block, rest := pem.Decode(content)
		if block == nil {
			return File{Path: name, Message: "not PEM, or cut off"}
		}
		is, err := x509.ParseCertificate(block.Bytes)
		if err != nil {
			return File{Path: name, Message: fmt.Sprintf("not a certificate: %v", err)}
		}
		if f.NotAfter.IsZero() || is.NotAfter.Before(f.NotAfter) {
			f.Subject, f.Authority, f.NotAfter = is.Subject.CommonName, is.IsCA, is.NotAfter.UTC()
		}
		if content = bytes.TrimSpace(rest); len(content) == 0 {
			return f
		}
	}
}
