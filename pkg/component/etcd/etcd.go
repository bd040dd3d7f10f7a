// Copyright 2026 The cluster-api-provider-kubexm Authors.
// SPDX-License-Identifier: Apache-2.0

// Package etcd holds the steps by which a host becomes a member of an etcd cluster and stays one: as a unit of systemd, or as
// a static pod. One host begins the cluster. The others join as learners, which do not count for quorum until they have all
// data, and are promoted then.
//
// etcd knows its members itself, so what is done is decided by scripts on the host that ask it: they may be cut at any line
// and run again, and they keep quorum.
package etcd

import (
	"crypto/sha256"
	"encoding/hex"
	"path"
	"slices"
	"strings"

	"github.com/mensylisir/cluster-api-provider-kubexm/pkg/host"
	"github.com/mensylisir/cluster-api-provider-kubexm/pkg/spec"
	"github.com/mensylisir/cluster-api-provider-kubexm/pkg/step"
)

// Form is what etcd runs as.
type Form string

const (
	// Unit is a unit of systemd.
	Unit Form = "unit"
	// Pod is a static pod of the host's kubelet.
	Pod Form = "pod"
)

// Settings are what a member must know of itself and its cluster.
type Settings struct {
	// Name and Address are this member's; the name is the host's.
	Name, Address string
	// Cluster is the cluster's name. With a random part it is the token with which etcd begins.
	Cluster string
	// Spec has its defaults.
	Spec spec.Etcd
	// First: this host begins the cluster; others join it.
	First bool
	// Members are all hosts that are to be members, this one among them.
	Members []spec.Member
	// Leaving are the hosts whose members are to be removed. No other member is, whether it is one of Members or not, but those of
	// Gone.
	Leaving []spec.Member
	// Gone are names or IDs of members that neither Members nor Leaving have, and whose hosts are known to be gone: they are removed,
	// too.
	Gone         []string
	Certificates spec.Certificates
	Form         Form
	// Clients are units on this host that are restarted with a Unit, those of them that run.
	Clients []string
	// Image is the full reference of etcd's image, for a Pod.
	Image string
}

const (
	bin     = "/usr/local/bin"
	dir     = "/etc/kubexm/etcd"
	ssl     = dir + "/ssl"
	caFile  = ssl + "/ca.pem"
	service = "etcd.service"

	// manifest is what the kubelet reads, and template what it is made of.
	manifest = "/etc/kubernetes/manifests/etcd.yaml"
	template = dir + "/etcd.yaml"
	// begun is a link to the write-ahead log, which must be there for a pod to start; see run.sh.
	begun    = dir + "/begun"
	unitPath = "/etc/systemd/system/" + service
	// runtime is made by systemd whenever it starts etcd: its age is etcd's.
	runtime = "kubexm-etcd"
	// account is what a Unit runs as.
	account = "etcd"
)

// owner of etcd's data and of what etcd must read: a static pod is root.
func (s Settings) owner() string {
	if s.Form == Unit {
		return account
	}
	return ""
}

// Claim declares what etcd and our scripts will write, so that a reset removes it. It comes before etcd is started, and for a
// Pod before containerd.Pods: the pod is stopped then before its data goes.
func Claim(s Settings) step.Step {
	// Made here, so that parents that are made with them go with them.
	var parts []step.Step
	if s.Form == Unit {
		parts = append(parts, step.User{Name: account})
	}
	parts = append(parts,
		step.Directory{Path: s.Spec.DataDir, Mode: 0o700, Owner: s.owner(), Group: s.owner()},
		step.Directory{Path: dir, Mode: 0o755},
	)
	paths := []string{s.Spec.DataDir, dir}
	if own := s.ownWALDir(); own != "" {
		parts = append(parts, step.Directory{Path: path.Dir(own), Mode: 0o700, Owner: s.owner(), Group: s.owner()})
		paths = append(paths, own, own+".tmp")
		for _, n := range asides {
			paths = append(paths, own+".removed."+n)
		}
	}
	if s.Form == Pod {
		parts, paths = append(parts, step.Directory{Path: path.Dir(manifest), Mode: 0o755}), append(paths, manifest)
	}
	about := step.Meta{Name: "etcd/claim", Description: "record what etcd will write"}
	if s.Form == Unit {
		// Certificates, by which a host follows the others, are the account's, which a host that was adopted may not have.
		about.Follows = step.FollowsOthers
	}
	return step.New(about, append(parts, step.Claim{Paths: paths})...)
}

// Programs installs etcdctl and etcdutl, and etcd where it is a Unit: not one of an earlier minor version than is there.
func Programs(artifacts []step.Artifact) step.Step {
	var parts []step.Step
	for _, a := range artifacts {
		if dir, name := path.Split(a.Path); name == "etcd" { // etcd/v3.6.14/amd64/etcd
			version := path.Base(path.Dir(path.Clean(dir)))
			parts = append(parts, step.Command{
				Title: "compare etcd's version with " + version,
				Argv:  []string{"/bin/sh", "-uc", older, "older", path.Join(bin, name), service, version},
				Done:  step.Done{Contents: []step.Content{{Path: path.Join(bin, name), Digest: a.Digest}}},
			})
		}
	}
	return step.New(step.Meta{Name: "etcd/programs", Description: "install etcd's programs"},
		append(parts, step.Programs(bin, artifacts, service)...)...)
}

// Clients installs etcdctl and etcdutl where Kubernetes runs etcd. A host that was adopted has neither, and what it follows the others by
// asks etcd before it is the host's turn to be changed.
func Clients(artifacts []step.Artifact) step.Step {
	about := step.Meta{Name: "etcd/programs", Description: "install etcd's programs", Follows: step.FollowsOthers}
	return step.New(about, step.Programs(bin, artifacts)...)
}

// Await comes before anything that needs an etcd which runs elsewhere: takes are the outputs by which it is known to be there.
func Await(takes []string) step.Step {
	return step.New(step.Meta{Name: "etcd/await", Description: "wait for etcd, which runs elsewhere", Takes: takes})
}

// leaving are the peer URLs of those whose members are to be removed.
func (s Settings) leaving() []string {
	urls := make([]string, len(s.Leaving))
	for i, m := range s.Leaving {
		urls[i] = peerURL(m)
	}
	return urls
}

// known are all hosts that have or had members: their names, each with its peer URL.
func (s Settings) known() []string {
	var pairs []string
	for _, m := range slices.Concat(s.Members, s.Leaving) {
		pairs = append(pairs, m.Name+"="+peerURL(m))
	}
	return pairs
}

func peerURL(m spec.Member) string { return "https://" + host.InURL(m.Address) + ":2380" }

// others are the addresses of the other members, as they stand in URLs.
func (s Settings) others() []string {
	var hosts []string
	for _, m := range s.Members {
		if m.Name != s.Name {
			hosts = append(hosts, host.InURL(m.Address))
		}
	}
	return hosts
}

// ownWALDir is where the user has the write-ahead log, "" for etcd's own place.
func (s Settings) ownWALDir() string {
	for _, a := range s.Spec.ExtraArgs {
		if a.Name == "wal-dir" {
			return a.Value
		}
	}
	return ""
}

// walDir is where the write-ahead log is: a data directory that has none is empty.
func (s Settings) walDir() string {
	if own := s.ownWALDir(); own != "" {
		return own
	}
	return path.Join(s.Spec.DataDir, "member", "wal")
}

func sha(text string) string {
	sum := sha256.Sum256([]byte(text))
	return hex.EncodeToString(sum[:])
}

func words(all []string) string { return strings.Join(all, " ") }
