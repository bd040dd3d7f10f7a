// Copyright 2026 The cluster-api-provider-kubexm Authors.
// SPDX-License-Identifier: Apache-2.0

// Package renewal holds the steps by which certificates that still last are made anew, because somebody asks for it.
package renewal

import (
	"path"
	"slices"
	"strings"
	"time"

	"github.com/mensylisir/cluster-api-provider-kubexm/pkg/graph"
	"github.com/mensylisir/cluster-api-provider-kubexm/pkg/step"
)

// Certificate is one that a step makes: what it is asked for by, and its file.
type Certificate struct{ Name, Path string }

// Certificates are those that the steps make on the host of that name.
func Certificates(host string, steps []step.Step) []Certificate {
	var all []Certificate
	for _, s := range steps {
		for _, c := range step.Certificates(s) {
			all = append(all, Certificate{name(host, c), c.Path})
		}
	}
	return all
}

// name is that of the file, without that of the host, which etcd's have in theirs.
func name(host string, c step.Certificate) string {
	file := strings.TrimSuffix(path.Base(c.Path), path.Ext(c.Path))
	if name, of := strings.CutSuffix(file, "-"+host); of && c.Authority == "etcd" {
		return "etcd-" + name
	}
	return file
}

// Steps are those of the steps that make a certificate with one of the names, after one that has them make it anew. None are left
// when there are no such certificates. After are outputs that must be there first.
func Steps(host string, steps []step.Step, names []string, asked time.Time, after ...string) []step.Step {
	var makers []step.Step
	var wanted []Certificate
	for _, s := range steps {
		here := slices.DeleteFunc(Certificates(host, []step.Step{s}), func(c Certificate) bool {
			return !slices.Contains(names, c.Name)
		})
		if len(here) > 0 {
			makers, wanted = append(makers, s), append(wanted, here...)
		}
	}
	if len(wanted) == 0 {
		return nil
	}
	return append([]step.Step{outdate(wanted, asked, after)}, makers...)
}

// outdate has the steps that come after it make other certificates, once for each time at which it is asked for. Until then these
// are there and good: they only get an age by which they are older than their keys.
func outdate(certs []Certificate, asked time.Time, after []string) step.Step {
	var names []string
	argv := []string{"touch", "-c", "-t", "197001020000"}
	for _, c := range certs {
		names, argv = append(names, c.Name), append(argv, c.Path)
	}
	return step.New(step.Meta{
		Name: "renewal/outdate", Takes: after,
		Description: "have made anew " + strings.Join(names, ", ") + " as asked for at " + asked.UTC().Format(time.RFC3339),
	}, step.Command{Title: "outdate certificates", Argv: argv}).Until(step.Done{SameInput: true})
}

// Done makes done, when the host's certificates are renewed and what uses them is well.
func Done(done graph.Output[string]) step.Step {
	return step.New(step.Meta{Name: "renewal/done", Description: "the certificates are renewed", Makes: []string{done.Name}})
}
