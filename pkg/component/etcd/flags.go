// Copyright 2026 The cluster-api-provider-kubexm Authors.
// SPDX-License-Identifier: Apache-2.0

package etcd

import (
	"github.com/mensylisir/cluster-api-provider-kubexm/pkg/host"
	"github.com/mensylisir/cluster-api-provider-kubexm/pkg/spec"
)

// flags are etcd's command line: all but what is known only when the member begins or joins, which is in its environment
// (ETCD_INITIAL_CLUSTER and its STATE and TOKEN). Where the user has one of ours among the extra arguments, theirs counts.
func (s Settings) flags() []string {
	e := s.Spec
	client, peer := "https://"+host.InURL(s.Address)+":2379", "https://"+host.InURL(s.Address)+":2380"
	ours := []spec.Arg{
		{Name: "name", Value: s.Name},
		{Name: "data-dir", Value: e.DataDir},
		{Name: "listen-client-urls", Value: client + ",https://127.0.0.1:2379"},
		{Name: "advertise-client-urls", Value: client},
		{Name: "listen-peer-urls", Value: peer},
		{Name: "initial-advertise-peer-urls", Value: peer},
		{Name: "listen-metrics-urls", Value: "http://127.0.0.1:2381"},
		{Name: "client-cert-auth", Value: "true"},
		{Name: "trusted-ca-file", Value: caFile},
		{Name: "cert-file", Value: s.certificate("member")},
		{Name: "key-file", Value: s.key("member")},
		{Name: "peer-client-cert-auth", Value: "true"},
		{Name: "peer-trusted-ca-file", Value: caFile},
		{Name: "peer-cert-file", Value: s.certificate("member")},
		{Name: "peer-key-file", Value: s.key("member")},
	}
	theirs := make(map[string]bool)
	for _, a := range e.ExtraArgs {
		theirs[a.Name] = true
	}
	var all []string
	for _, a := range ours {
		if !theirs[a.Name] {
			all = append(all, "--"+a.Name+"="+a.Value)
		}
	}
	for _, a := range e.Flags() {
		all = append(all, "--"+a.Name+"="+a.Value)
	}
	return all
}
