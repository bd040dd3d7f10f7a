// Copyright 2026 The cluster-api-provider-kubexm Authors.
// SPDX-License-Identifier: Apache-2.0

package pipeline_test

import (
	"crypto/sha256"
	"encoding/hex"
	"encoding/json"
	"fmt"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	"github.com/mensylisir/cluster-api-provider-kubexm/pkg/artifact"
	"github.com/mensylisir/cluster-api-provider-kubexm/pkg/artifact/oci"
	"github.com/mensylisir/cluster-api-provider-kubexm/pkg/pipeline"
	"github.com/mensylisir/cluster-api-provider-kubexm/pkg/plan"
	"github.com/mensylisir/cluster-api-provider-kubexm/pkg/spec"
	"github.com/mensylisir/cluster-api-provider-kubexm/pkg/step"
)

// offlineBundle is bundle with the catalogue's packages of Debian 12, each of which depends on a library of its own.
func offlineBundle(t *testing.T) *artifact.Bundle {
	t.Helper()
	catalogue, err := artifact.DefaultCatalogue()
	if err != nil {
		t.Fatal(err)
	}
	const repository = "os/debian/12/amd64"
	m := bundle(t).Manifest()
	m.Items = slices.Clone(m.Items)
	add := func(kind artifact.Kind, name, version, file string, b oci.Blob) {
		m.Items = append(m.Items, artifact.Item{
			Kind: kind, Component: "debian", System: "debian/12", Arch: "amd64", Name: name, Version: version, Path: repository + "/" + file,
			Blob: b, Source: "debian:bookworm",
		})
	}
	var index strings.Builder
	for _, name := range catalogue.SystemPackages("debian/12") {
		for _, p := range []struct{ name, depends string }{{name, "libc6, lib" + name + " (>= 1)"}, {"lib" + name, ""}} {
			b, file := blob([]byte(p.name)), p.name+"_1_amd64.deb"
			fmt.Fprintf(&index, "Package: %s\nVersion: 1\nDepends: %s\nFilename: ./%s\nSize: %d\nSHA256: %s\n\n",
				p.name, p.depends, file, b.Size, b.SHA256)
			add(artifact.KindPackage, p.name, "1", file, b)
		}
	}
	add(artifact.KindIndex, "Packages", "12", "Packages", blob([]byte(index.String())))
	manifest, err := json.Marshal(m)
	if err != nil {
		t.Fatal(err)
	}
	dir := t.TempDir()
	for path, content := range map[string]string{repository + "/Packages": index.String(), artifact.ManifestName: string(manifest)} {
		if err := os.MkdirAll(filepath.Dir(filepath.Join(dir, path)), 0o755); err != nil {
			t.Fatal(err)
		}
		if err := os.WriteFile(filepath.Join(dir, path), []byte(content), 0o644); err != nil {
			t.Fatal(err)
		}
	}
	b, err := artifact.Open(t.Context(), dir, nil)
	if err != nil {
		t.Fatal(err)
	}
	return b
}

func blob(content []byte) oci.Blob {
	sum := sha256.Sum256(content)
	return oci.Blob{SHA256: hex.EncodeToString(sum[:]), Size: int64(len(content))}
}

// TestPackagesOffline: whatever kind of cluster it is, the catalogue has the packages that its hosts install, so a bundle that was made
// for their operating system lets them ask no mirror.
func TestPackagesOffline(t *testing.T) {
	b := offlineBundle(t)
	planned := map[string]bool{}
	for _, way := range ways {
		for _, endpoint := range endpoints {
			for _, proxy := range []spec.ProxyMode{spec.ProxyIPTables, spec.ProxyIPVS, spec.ProxyNFTables} {
				nodes := members(t, way, etcds[1].set, endpoint.set)
				for i := range nodes {
					nodes[i].Target.Cluster.Kubernetes.Proxy.Mode = proxy
				}
				p, err := pipeline.CreateCluster("prod", nodes, b)
				if err != nil {
					t.Fatal(err)
				}
				for where, s := range packageSteps(p) {
					var files []string
					for _, f := range s.From {
						files = append(files, f.Name)
					}
					for _, name := range s.Names {
						planned[name] = true
						if !slices.Contains(files, name) || !slices.Contains(files, "lib"+name) {
							t.Errorf("%s, %s, %s, %s: package %s, or what it depends on, is not among those of the bundle: %q",
								way, endpoint.name, proxy, where, name, files)
						}
					}
					if len(files) != 2*len(s.Names) {
						t.Errorf("%s: packages %q come with %q, more than what they need", where, s.Names, files)
					}
				}
				roundTrip(t, p)
			}
		}
	}
	for _, name := range []string{"haproxy", "keepalived", "nginx", "curl", "iptables", "ipset", "nftables"} {
		if !planned[name] {
			t.Errorf("no plan installs %s", name)
		}
	}
}

// TestPackagesOfOtherSystems: what a bundle has for one release is not installed on another, and what it does not have at all is asked
// of the host's mirrors, alone.
func TestPackagesOfOtherSystems(t *testing.T) {
	b := offlineBundle(t)
	extra := func(t *spec.Target) {
		t.Cluster.Kubernetes.Type, t.Cluster.Etcd.Type = spec.KubernetesKubexm, spec.EtcdKubexm
		t.Cluster.System.Packages.Debs = []string{"nfs-common", "ipset=2", "nftables"}
	}
	trixie := machine
	trixie.OSVersion = "13"
	n := node("w1", "192.168.0.21", spec.RoleWorker, trixie, extra)
	if !pipeline.Stale(machine, trixie) {
		t.Error("a plan for another release of the system counts as up to date")
	}
	p, err := pipeline.JoinWorker(n, b)
	if err != nil {
		t.Fatal(err)
	}
	for where, s := range packageSteps(p) {
		if len(s.From) > 0 {
			t.Errorf("%s: a host with Debian 13 gets packages of Debian 12: %v", where, s.From)
		}
	}
	n.System = machine
	if p, err = pipeline.JoinWorker(n, b); err != nil {
		t.Fatal(err)
	}
	for where, s := range packageSteps(p) {
		var files []string
		for _, f := range s.From {
			files = append(files, f.Name)
		}
		slices.Sort(files)
		if want := []string{"iptables", "libiptables", "libnftables", "nftables"}; !slices.Equal(files, want) {
			t.Errorf("%s: of %q come from the bundle %q, want %q", where, s.Names, files, want)
		}
	}
}

// packageSteps are a plan's steps that install packages, by host and name.
func packageSteps(p *plan.Plan) map[string]step.Package {
	found := map[string]step.Package{}
	var search func(where string, s step.Step)
	search = func(where string, s step.Step) {
		switch s := s.(type) {
		case step.Sequence:
			for _, part := range s.Parts {
				search(where, part)
			}
		case step.Package:
			found[where] = s
		}
	}
	for i := range p.Graph().Len() {
		n := p.Graph().Node(i).Value
		search(n.Host+" "+n.Name, n.Step)
	}
	return found
}
