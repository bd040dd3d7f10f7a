// Copyright 2026 The cluster-api-provider-kubexm Authors.
// SPDX-License-Identifier: Apache-2.0

//go:build ha

package command

import (
	"context"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
)

// TestRecover loses the state of a cluster and reads it back from the hosts, which are what they were before, then and after. What is
// recovered goes on as if nothing had been lost.
func TestRecover(t *testing.T) {
	for _, kind := range []struct {
		name                 string
		hosts                int
		spec, alone, swapped string
		// accepts is whether the hosts' keys are not known, and accepted.
		accepts bool
		life    func(*environment)
	}{
		{"kubeadm", 2, "  roleGroups: {master: [$1], worker: [$2]}\n", "  roleGroups: {master: [$1]}\n", "  roleGroups: {master: [$2], worker: [$1]}\n", false,
			(*environment).goesOn},
		{"kubexm", 2, "  roleGroups: {master: [$1], worker: [$2]}\n  kubernetes: {type: kubexm, version: $VERSION}\n", "", "", true, (*environment).isDeletedWhenCut},
		{"three", 4, "  roleGroups: {master: [$1, $2, $3], worker: [$4]}\n  controlPlaneEndpoint: {internalLoadbalancer: haproxy}\n",
			"  roleGroups: {master: [$1], worker: [$4]}\n  controlPlaneEndpoint: {internalLoadbalancer: haproxy}\n", "", false, (*environment).isTakenIn},
	} {
		t.Run(kind.name, func(t *testing.T) {
			e := start(t, "recover-"+kind.name, kind.hosts)
			spec := strings.ReplaceAll(kind.spec, "$VERSION", e.bundle.Manifest().KubernetesVersion)
			recoverArgs := append([]string{"recover"}, e.declared()...)
			e.write(spec)
			e.ends(3, recoverArgs, "no record of an owner", "Remedy")
			e.unchanged(e.Hosts...)
			e.ends(0, e.CreateArgs())
			e.ends(2, recoverArgs, "is not overwritten", "nothing is missing")

			t.Log("lost")
			e.awaitPods()
			was := e.running()
			e.lose()
			e.ends(3, e.CreateArgs(), "kubexm recover -f config.yaml")
			e.ends(3, []string{"recover", "-f", e.Config(), "--bundle", e.Bundle, "--known-hosts", os.DevNull}, "accept-new-host-keys")
			if kind.alone != "" {
				t.Log("refused, as what would be forgotten or is another host")
				e.write(kind.alone)
				e.ends(3, recoverArgs, "lists the Node "+e.Hosts[1].Name)
				if kind.swapped != "" {
					e.write(kind.swapped)
					e.ends(3, recoverArgs, "is declared to be the ControlPlane host "+e.Hosts[1].Name)
				}
				e.write(spec)
			}
			e.ends(0, append(recoverArgs, "--dry-run"), "No changes.", e.Hosts[0].Name, e.Hosts[1].Name)
			e.hasNoState()

			t.Log("recovered, after having been cut")
			if kind.accepts {
				e.recoversWhenCut([]string{"recover", "-f", e.Config(), "--bundle", e.Bundle, "--known-hosts", os.DevNull, "--accept-new-host-keys"})
				e.keepsKeys()
			} else {
				e.recoversWhenCut(recoverArgs)
			}
			e.ends(2, recoverArgs, "is not overwritten")
			if diff := cmp.Diff(was, e.running()); diff != "" {
				t.Errorf("hosts were changed (-before +after):\n%s", diff)
			}
			e.ends(0, append([]string{"plan"}, e.declared()...), "No changes.")
			e.ends(0, []string{"get", "nodes"}, e.Hosts[0].Name, e.Hosts[1].Name, "Ready")
			e.ends(0, []string{"certs", "check", "--known-hosts", e.KnownHosts})
			e.kubeconfig()
			kind.life(e)
			e.unchanged(e.Hosts...)
		})
	}
}

// isTakenIn has a management plane take the cluster in, by which nothing is changed, and deletes the cluster.
func (e *environment) isTakenIn() {
	e.t.Log("a management plane takes the hosts in, and changes nothing")
	was := e.running()
	e.ends(0, e.CreateArgs(), "0 changes")
	e.ends(0, e.CreateArgs(), "0 changes")
	if diff := cmp.Diff(was, e.running()); diff != "" {
		e.t.Errorf("hosts were changed (-before +after):\n%s", diff)
	}
	e.isDeleted()
}

// goesOn has a management plane take the cluster in, takes the worker out, brings it in again, and deletes the cluster.
func (e *environment) goesOn() {
	worker := e.Hosts[1]
	e.t.Log("no host is forgotten before a management plane knows it")
	e.write("  roleGroups: {master: [$1]}\n")
	e.ends(2, e.CreateArgs(), "was recovered", worker.Name)
	e.ends(2, append([]string{"plan", "-o", filepath.Join(e.Dir, "plan.json")}, e.declared()...), "was recovered", worker.Name)
	e.write("  roleGroups: {master: [$1], worker: [$2]}\n")

	e.t.Log("a management plane takes the hosts in, and changes nothing")
	was := e.running()
	e.ends(0, e.CreateArgs(), "0 changes")
	e.ends(0, e.CreateArgs(), "0 changes")
	if diff := cmp.Diff(was, e.running()); diff != "" {
		e.t.Errorf("hosts were changed (-before +after):\n%s", diff)
	}

	e.t.Log("the worker leaves and comes back")
	e.write("  roleGroups: {master: [$1]}\n")
	e.ends(0, e.CreateArgs())
	e.unchanged(worker)
	e.write("  roleGroups: {master: [$1], worker: [$2]}\n")
	e.ends(0, e.CreateArgs())
	e.ends(0, []string{"get", "nodes"}, worker.Name)
	e.isDeleted()
}

// isDeletedWhenCut kills the program while a management plane is to take the cluster in, and deletes the cluster. What that plane has of it
// is not all of it.
func (e *environment) isDeletedWhenCut() {
	ctx, cancel := context.WithTimeout(e.t.Context(), 8*time.Second)
	defer cancel()
	if out, err := e.Run(ctx, e.CreateArgs()...); err == nil || ctx.Err() == nil {
		e.t.Errorf("it was not cut: %v\n%s", err, out)
	}
	if _, err := os.Stat(filepath.Join(e.state(), "plane")); err != nil {
		e.t.Errorf("it was cut before there was a management plane: %v", err)
	}
	e.isDeleted()
}

func (e *environment) isDeleted() {
	e.ends(0, []string{"delete", "cluster", e.Name, "--yes", "--known-hosts", e.KnownHosts})
}

func (e *environment) state() string { return filepath.Join(e.Dir, ".kubexm", e.Name) }

// lose removes the cluster's state.
func (e *environment) lose() {
	e.t.Helper()
	if err := os.RemoveAll(e.state()); err != nil {
		e.t.Fatal(err)
	}
}

// hasNoState wants nothing of the cluster's state to be there but what a command leaves before it has done anything.
func (e *environment) hasNoState() {
	e.t.Helper()
	found, err := filepath.Glob(filepath.Join(e.state(), "*"))
	if err != nil {
		e.t.Fatal(err)
	}
	for _, path := range found {
		if name := filepath.Base(path); name != "lock" && name != "known_hosts" {
			e.t.Errorf("there is %s", path)
		}
	}
}

// recoversWhenCut kills the program again and again, a little later each time, until it ends by itself: there is a whole state then, and
// none before.
func (e *environment) recoversWhenCut(args []string) {
	e.t.Helper()
	longer := func(after time.Duration) time.Duration { return after + after/2 }
	for range e.cuts(args, 2, 500*time.Millisecond, longer) {
		if _, err := os.Stat(filepath.Join(e.state(), "inventory.json")); err == nil {
			break // it was cut when all was done
		}
		e.hasNoState()
	}
	for _, file := range []string{"inventory.json", "kubeconfig", "secrets/ca.key",
		"secrets/etcd.key", "secrets/proxy.key", "secrets/sa.key", "secrets/encryption.key"} {
		if info, err := os.Stat(filepath.Join(e.state(), file)); err != nil || info.Mode().Perm() != 0o600 {
			e.t.Errorf("%s: %v, %v", file, info, err)
		}
	}
	if _, err := os.Stat(filepath.Join(e.Dir, ".kubexm", ".recovering")); err == nil {
		e.t.Error("something is left where the state was gathered")
	}
}

// keepsKeys wants the keys of all hosts that were accepted to be kept.
func (e *environment) keepsKeys() {
	e.t.Helper()
	keys, err := os.ReadFile(filepath.Join(e.state(), "known_hosts"))
	for _, h := range e.Hosts {
		if !strings.Contains(string(keys), h.Address) {
			e.t.Errorf("the key of %s is not kept (%v):\n%s", h.Name, err, keys)
		}
	}
}

// running is all that a run may change on each host: files with their sizes and times, and the processes of the cluster with when they
// began. The serial of the state is what each run leaves, whatever else it changes. A process has its parent's name until it becomes the
// program that it was made for, such as flanneld's iptables: that is none of the cluster's.
func (e *environment) running() map[string]string {
	e.t.Helper()
	all := map[string]string{}
	for _, h := range e.Hosts {
		all[h.Name] = e.sh(h, `find /etc /opt /usr /var/lib/kubexm /var/lib/kubelet/config.yaml /var/lib/kubelet/pki -type f ! -name state-serial -printf '%p %s %T@\n' | sort
ps -C kubelet,containerd,containerd-shim,etcd,kube-apiserver,kube-controller,kube-scheduler,kube-proxy,coredns,flanneld -o pid=,ppid=,comm=,lstart= |
	awk '{ name[$1] = $3; parent[$1] = $2; $2 = ""; line[$1] = $0 } END { for (p in name) if (name[parent[p]] != name[p]) print line[p] }' | sort`)
	}
	return all
}
