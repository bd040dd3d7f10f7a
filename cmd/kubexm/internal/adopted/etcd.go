// Copyright 2026 The cluster-api-provider-kubexm Authors.
// SPDX-License-Identifier: Apache-2.0

package adopted

import (
	"fmt"
	"net"
	"net/url"
	"slices"
	"strings"
	"time"

	"github.com/mensylisir/cluster-api-provider-kubexm/pkg/component"
	"github.com/mensylisir/cluster-api-provider-kubexm/pkg/host"
	"github.com/mensylisir/cluster-api-provider-kubexm/pkg/pki"
	"github.com/mensylisir/cluster-api-provider-kubexm/pkg/preflight"
	"github.com/mensylisir/cluster-api-provider-kubexm/pkg/quorum"
	"github.com/mensylisir/cluster-api-provider-kubexm/pkg/spec"
)

// EtcdUnit is a control plane host's etcd.service, which others have made.
type EtcdUnit struct {
	spec.Host
	component.TheirEtcd
	// Read is what the host has of its Files.
	Read map[string][]byte
}

// EtcdFound is etcd as its members' hosts have it.
type EtcdFound struct {
	// Authority is zero if no host has the key, or there are problems with it.
	Authority pki.KeyPair
	// Members are all that etcd has, nil if it does not say.
	Members []quorum.Member
}

// EtcdUnits judges whether the members of etcd on the control plane hosts can become those of a cluster that is so declared, with etcd of
// this version in the bundle. That etcd has no other members is judged elsewhere (recovered.Cluster).
func EtcdUnits(cluster string, e spec.Etcd, version string, hosts []EtcdUnit, now time.Time) (EtcdFound, []preflight.Problem) {
	var found EtcdFound
	var problems []preflight.Problem
	ids := map[string][]string{}
	for _, h := range hosts {
		reasons := h.Unfit(e, h.NodeAddress(), version)
		if h.Runs() {
			view, answered := h.view()
			reasons = append(reasons, answered...)
			if len(answered) == 0 {
				ids[view.Cluster] = append(ids[view.Cluster], h.Name)
				found.Members = view.Members
			}
		}
		for _, r := range reasons {
			problems = append(problems, problem(h.Name, checkEtcd, r.Cause, r.Remedy))
		}
	}
	if len(ids) > 1 {
		found.Members = nil
		problems = append(problems, problem(cluster, checkEtcd, "its control plane hosts have members of several etcd clusters: "+several(ids),
			"check whether the addresses lead to the hosts that are meant"))
	}
	pair, wrong := authorityOf(cluster, hosts, now)
	if len(wrong) == 0 {
		found.Authority = pair
	}
	return found, append(problems, wrong...)
}

// several are the names by what they have.
func several(by map[string][]string) string {
	var all []string
	for has, names := range by {
		all = append(all, strings.Join(names, ", ")+": "+has)
	}
	slices.Sort(all)
	return strings.Join(all, "; ")
}

// view is what the host's member says, and reasons for which its cluster of members is not taken over.
func (h EtcdUnit) view() (quorum.View, []component.Reason) {
	view, err := quorum.Of(h.Answer(), 0)
	if err != nil {
		return view, []component.Reason{{Cause: "its etcd does not answer: " + err.Error(), Remedy: "bring etcd back: a cluster is adopted while it runs"}}
	}
	var all []component.Reason
	refuse := func(cause, remedy string) { all = append(all, component.Reason{Cause: cause, Remedy: remedy}) }
	for _, a := range view.Alarms {
		refuse("etcd has the alarm "+a.Type+" of its member "+a.Member, "see to it, and end it: etcdctl alarm disarm")
	}
	own := "https://" + net.JoinHostPort(h.NodeAddress(), "2380")
	for _, m := range view.Members {
		switch {
		case m.ID == view.Own && strings.TrimSuffix(m.PeerURL, "/") != own:
			refuse(fmt.Sprintf("its member of etcd has the peer URL %s, and would have %s", m.PeerURL, own),
				"have the member say so to the others: etcdctl member update "+m.ID+" --peer-urls="+own)
		case m.ID == view.Own && m.Learner:
			refuse("its member of etcd has no vote: it is a learner", "promote it: etcdctl member promote "+m.ID)
		case m.Name == "":
			refuse("etcd has a member that has never started: "+m.PeerURL, "start it, or remove it: etcdctl member remove "+m.ID)
		}
	}
	return view, all
}

// authorityOf is what all members know each other by, with its key.
func authorityOf(cluster string, hosts []EtcdUnit, now time.Time) (pki.KeyPair, []preflight.Problem) {
	var found pki.KeyPair
	var problems []preflight.Problem
	var at []string
	prints := map[string][]string{}
	for _, h := range hosts {
		pair, reasons := h.Authority(h.Read, now)
		for _, r := range reasons {
			problems = append(problems, problem(h.Name, checkEtcd, r.Cause, r.Remedy))
		}
		fingerprint, err := pki.Fingerprint(pair.Cert)
		if err != nil {
			continue // there are reasons
		}
		prints[fingerprint] = append(prints[fingerprint], h.Name)
		at = append(at, h.Name+":"+h.Key())
		if found.Key.IsZero() {
			found = pair
		}
	}
	switch {
	case len(prints) > 1:
		problems = append(problems, problem(cluster, checkEtcd, "its control plane hosts have etcd's authorities of several kinds: "+several(prints),
			"bring a change of authorities to its end first, and check whether the addresses lead to the hosts that are meant"))
	case len(prints) == 1 && found.Key.IsZero():
		problems = append(problems, problem(cluster, checkEtcd, "no control plane host has the key of etcd's authority, which becomes the cluster's: "+
			"it is none of "+strings.Join(at, ", "), "put it there on one of them, for root alone; or declare etcd as external: it stays yours then"))
	}
	return found, problems
}

// strangers refuses endpoints of etcd that are no members on declared control plane hosts.
func (s Seen) strangers(on, check, who string, endpoints []string) []preflight.Problem {
	known := []string{"https://127.0.0.1:2379", "https://[::1]:2379", "https://localhost:2379"}
	for _, h := range s.Hosts {
		if h.Role == spec.RoleControlPlane {
			known = append(known, "https://"+net.JoinHostPort(h.NodeAddress(), "2379"))
		}
	}
	var strange []string
	for _, e := range endpoints {
		parsed, err := url.Parse(strings.TrimSpace(e))
		if err != nil || !slices.Contains(known, parsed.Scheme+"://"+parsed.Host) {
			strange = append(strange, host.Word(e, 200))
		}
	}
	if len(strange) == 0 {
		return nil
	}
	return []preflight.Problem{problem(on, check, fmt.Sprintf("%s goes to etcd at %s, where no declared control plane host has a member", who,
		strings.Join(strange, ", ")), "declare all control plane hosts; where etcd runs on other hosts, set spec.etcd.type: external")}
}
