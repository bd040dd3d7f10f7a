// Copyright 2026 The cluster-api-provider-kubexm Authors.
// SPDX-License-Identifier: Apache-2.0

// Package certs finds the certificates on a cluster's hosts, and when they end. It reads the hosts alone: a certificate that
// no plan speaks of any more ends like any other.
package certs

import (
	"bytes"
	"context"
	"crypto/x509"
	_ "embed"
	"encoding/pem"
	"fmt"
	"slices"
	"strings"
	"time"

	"github.com/mensylisir/cluster-api-provider-kubexm/pkg/engine"
	"github.com/mensylisir/cluster-api-provider-kubexm/pkg/host"
)

// Status is how much longer a certificate is good.
type Status string

const (
	// Good is one that is good for long enough.
	Good Status = "Good"
	// Ending is one that ends soon.
	Ending Status = "Ending"
	// Ended is one that is good no more.
	Ended Status = "Ended"
	// Unreadable is a file that should hold one.
	Unreadable Status = "Unreadable"
)

// Certificate is a file with a certificate on a host.
type Certificate struct {
	Cluster string `json:"cluster"`
	Host    string `json:"host"`
	// Path is the file's, "" where nothing could be read.
	Path string `json:"path,omitempty"`
	// Subject is the common name. Authority says that it signs others.
	Subject   string    `json:"subject,omitempty"`
	Authority bool      `json:"authority,omitempty"`
	NotAfter  time.Time `json:"notAfter,omitzero"`
	// DaysLeft are whole days; below 0 it has ended.
	DaysLeft int    `json:"daysLeft"`
	Status   Status `json:"status"`
	// Message is why it cannot be read.
	Message string `json:"message,omitempty"`
}

// places are where certificates are, whoever made them: directories, and kubeconfigs that may hold one.
func places() []string {
	return []string{
		"/etc/kubernetes/pki", "/etc/kubernetes/pki/etcd", "/var/lib/kubelet/pki", "/etc/kubexm/etcd/ssl",
		"/etc/kubernetes/admin.conf", "/etc/kubernetes/super-admin.conf", "/etc/kubernetes/controller-manager.conf",
		"/etc/kubernetes/scheduler.conf", "/etc/kubernetes/kubelet.conf", "/etc/kubernetes/kube-proxy.conf",
	}
}

//go:embed look.sh
var look string

// queryID names the answer of the script.
const queryID = "certificates"

func query() host.Query {
	return host.Query{Commands: []host.CommandQuery{{ID: queryID, Argv: append([]string{"/bin/sh", "-c", look, "sh"}, places()...)}}}
}

// Of looks at all hosts of a cluster at once: one exchange with each. Those that end within warn are Ending. The certificates
// of the hosts that answered, in the order of hosts, come beside the error, which names those that did not.
func Of(
	ctx context.Context, e *engine.Engine, cluster string, hosts []string, now time.Time, warn time.Duration,
) ([]Certificate, error) {
	facts, err := e.Look(ctx, hosts, func(string) host.Query { return query() })
	all := []Certificate{}
	for _, name := range hosts {
		if facts[name] == nil {
			continue
		}
		result := facts[name].Commands[queryID]
		found := parse(string(result.Stdout))
		if result.ExitCode != 0 {
			found = append(found, Certificate{Status: Unreadable, Message: fmt.Sprintf(
				"not all could be read, exit code %d: %s", result.ExitCode, bytes.TrimSpace(result.Stderr))})
		}
		for _, c := range found {
			c.Cluster, c.Host = cluster, name
			c.judge(now, warn)
			all = append(all, c)
		}
	}
	return all, err
}

// judge says how much longer the certificate is good.
func (c *Certificate) judge(now time.Time, warn time.Duration) {
	if c.Status == Unreadable {
		return
	}
	left := c.NotAfter.Sub(now)
	c.DaysLeft = int(left / (24 * time.Hour))
	switch {
	case left <= 0:
		c.Status, c.DaysLeft = Ended, c.DaysLeft-1
	case left < warn:
		c.Status = Ending
	default:
		c.Status = Good
	}
}

// parse reads what the script prints. Files without a certificate, such as keys, are passed over.
func parse(text string) []Certificate {
	var all []Certificate
	for part := range strings.SplitSeq("\n"+text, "\n# ") {
		path, content, _ := strings.Cut(part, "\n")
		if path == "" || strings.TrimSpace(content) == "" {
			continue
		}
		all = append(all, read(path, []byte(content)))
	}
	slices.SortFunc(all, func(a, b Certificate) int { return strings.Compare(a.Path, b.Path) })
	return all
}

// read is the certificate of a file: of several in one file, such as a chain, the first to end counts.
func read(path string, content []byte) Certificate {
	c := Certificate{Path: path}
	for len(bytes.TrimSpace(content)) > 0 {
		block, rest := pem.Decode(content)
		if block == nil {
			return Certificate{Path: path, Status: Unreadable, Message: "not PEM, or cut off"}
		}
		content = rest
		is, err := x509.ParseCertificate(block.Bytes)
		if err != nil {
			return Certificate{Path: path, Status: Unreadable, Message: fmt.Sprintf("not a certificate: %v", err)}
		}
		if c.NotAfter.IsZero() || is.NotAfter.Before(c.NotAfter) {
			c.Subject, c.Authority, c.NotAfter = is.Subject.CommonName, is.IsCA, is.NotAfter.UTC()
		}
	}
	return c
}
