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

	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/util/wait"
	"k8s.io/client-go/kubernetes"
	"k8s.io/client-go/tools/clientcmd"

	"github.com/mensylisir/cluster-api-provider-kubexm/test/hosts"
)

// TestEtcdBackup writes, backs up, writes more, and restores: the first is there, the second is not, pods run, and what is declared is so.
// With one control plane host, etcd is a unit, or kubeadm's pod; with three, either.
func TestEtcdBackup(t *testing.T) {
	for _, kind := range []struct {
		name, spec string
		hosts      int
	}{
		{"one", "  roleGroups: {master: [$1], worker: [$2]}\n", 2},
		{"pod", "  roleGroups: {master: [$1], worker: [$2]}\n  etcd: {type: kubeadm}\n", 2},
		{"three", "  roleGroups: {master: [$1, $2, $3]}\n  controlPlaneEndpoint: {internal: haproxy}\n", 3},
		{"units", "  roleGroups: {master: [$1, $2, $3]}\n  controlPlaneEndpoint: {internal: haproxy}\n  kubernetes: {type: kubexm, version: $VERSION}\n", 3},
	} {
		t.Run(kind.name, func(t *testing.T) {
			e := start(t, "backup-"+kind.name, kind.hosts)
			e.write(strings.ReplaceAll(kind.spec, "$VERSION", e.bundle.Manifest().KubernetesVersion))
			e.ends(0, e.CreateArgs())
			e.backsUpAndRestores()
			t.Log("deleted")
			e.ends(0, []string{"delete", "cluster", e.Name, "--yes", "--known-hosts", e.KnownHosts})
			e.unchanged(e.Hosts...)
		})
	}
}

// TestBackupsByTimer: the hosts save backups by themselves while that is declared, and a reset leaves nothing of it.
func TestBackupsByTimer(t *testing.T) {
	e := start(t, "backup-timer", 2)
	e.write("  roleGroups: {master: [$1], worker: [$2]}\n  etcd:\n    backup: {schedule: \"0 3 * * *\", keep: 2}\n")
	e.ends(0, e.CreateArgs())
	h := e.Hosts[0]
	e.sh(h, "systemctl is-active kubexm-etcd-backup.timer && systemctl list-timers --all | grep kubexm-etcd-backup")
	for range 3 {
		e.sh(h, "systemctl start kubexm-etcd-backup.service")
	}
	e.sh(h, "cd /var/lib/kubexm/etcd-backups && ls -l && test $(ls *.db | wc -l) = 2 && test $(ls *.json | wc -l) = 2")
	e.ends(0, append([]string{"plan"}, e.declared()...), "No changes.")
	e.replace("    backup: {schedule: \"0 3 * * *\", keep: 2}\n", "    dataDir: /var/lib/etcd\n")
	e.ends(0, e.CreateArgs())
	e.sh(h, "! ls /etc/systemd/system/kubexm-etcd-backup.* && ! systemctl is-active kubexm-etcd-backup.timer")
	e.ends(0, append([]string{"plan"}, e.declared()...), "No changes.")
	e.ends(0, []string{"delete", "cluster", e.Name, "--yes", "--known-hosts", e.KnownHosts})
	e.unchanged(e.Hosts...)
}

// TestEtcdRestoreIsCut kills the program again and again while it restores, a little later each time: anyone who comes next goes on, and
// meanwhile nothing else makes the host a member.
func TestEtcdRestoreIsCut(t *testing.T) {
	e := start(t, "backup-cut", 2)
	e.write("  roleGroups: {master: [$1], worker: [$2]}\n")
	e.ends(0, e.CreateArgs())
	api := e.api()
	e.says(api, "first")
	ran := e.pods(api)
	e.ends(0, append([]string{"etcd", "backup"}, e.reached()...), "is saved in")
	e.says(api, "second")
	found, err := filepath.Glob(filepath.Join(e.Dir, ".kubexm", e.Name, "etcd-backups", "*.db"))
	if err != nil || len(found) != 1 {
		t.Fatalf("there are the backups %v (%v)", found, err)
	}
	args := append([]string{"etcd", "restore", "--yes", "--from", found[0]}, e.reached()...)
	refused := false
	for range e.cuts(args, 3, 1500*time.Millisecond, later(500*time.Millisecond)) {
		if _, err := e.Hosts[0].Exec(t.Context(), "test", "-e", "/var/lib/kubexm/etcd-restore/under-way"); err == nil && !refused {
			refused = true
			out := e.ends(0, append([]string{"plan"}, e.declared()...))
			if !strings.Contains(out, "a restore is under way") {
				t.Errorf("while a restore is under way, the plan says:\n%s", out)
			}
		}
	}
	if !refused {
		t.Error("it was never cut while it was under way")
	}
	e.restored(api, ran)
	e.ends(0, append([]string{"plan"}, e.declared()...), "No changes.")
}

// reached are the flags by which the config file and the hosts' keys are found.
func (e *environment) reached() []string {
	return []string{"-f", e.Config(), "--known-hosts", e.KnownHosts}
}

func (e *environment) backsUpAndRestores() {
	t, api := e.t, e.api()
	e.says(api, "first")
	ran := e.pods(api)

	t.Log("backed up")
	e.ends(0, append([]string{"etcd", "backup", "--dry-run"}, e.reached()...), "etcd/backup")
	e.ends(0, append([]string{"etcd", "backup"}, e.reached()...), "is saved in")
	e.ends(0, []string{"etcd", "backups", "list"}, e.Hosts[0].Name)
	found, err := filepath.Glob(filepath.Join(e.Dir, ".kubexm", e.Name, "etcd-backups", "*.db"))
	if err != nil || len(found) != 1 {
		t.Fatalf("there are the backups %v (%v)", found, err)
	}
	if info, err := os.Stat(found[0]); err != nil || info.Mode().Perm() != 0o600 {
		t.Errorf("the backup is for more than its owner: %v, %v", info, err)
	}
	e.says(api, "second")

	t.Log("refused, and nothing is changed")
	e.ends(2, append([]string{"etcd", "restore", "--from", found[0]}, e.reached()...), "Give --yes")
	e.ends(2, append([]string{"etcd", "restore", "--yes", "--from", found[0] + ".none"}, e.reached()...))
	bad := filepath.Join(e.Dir, filepath.Base(found[0]))
	for _, file := range []struct{ from, to string }{{found[0], bad},
		{strings.TrimSuffix(found[0], ".db") + ".json", strings.TrimSuffix(bad, ".db") + ".json"}} {
		content, err := os.ReadFile(file.from)
		if err != nil {
			t.Fatal(err)
		}
		if file.to == bad {
			content[len(content)/2] ^= 1
		}
		if err := os.WriteFile(file.to, content, 0o600); err != nil {
			t.Fatal(err)
		}
	}
	e.ends(2, append([]string{"etcd", "restore", "--yes", "--from", bad}, e.reached()...), "is damaged")

	t.Log("restored")
	e.ends(0, append([]string{"etcd", "restore", "--dry-run", "--from", found[0]}, e.reached()...), "etcd/restore-data", "ends this host's etcd")
	e.ends(0, append([]string{"etcd", "restore", "--yes", "--from", found[0]}, e.reached()...), "restored in")
	e.restored(api, ran)
	e.says(api, "third")

	t.Log("restored once more, from a host")
	e.ends(0, append([]string{"etcd", "backup", "--host-only", "--directory", "/var/lib/kubexm/own"}, e.reached()...), "is saved in")
	on := e.Hosts[0].Name + ":" + strings.TrimSpace(e.sh(e.Hosts[0], "ls /var/lib/kubexm/own/*.db"))
	e.says(api, "second")
	e.ends(0, append([]string{"etcd", "restore", "--yes", "--from", on}, e.reached()...), "restored in")
	e.restored(api, ran, "third")

	t.Log("what is declared is so")
	e.ends(0, append([]string{"plan"}, e.declared()...), "No changes.")
	e.ends(0, e.CreateArgs(), "0 changes")
}

func (e *environment) api() kubernetes.Interface {
	e.t.Helper()
	return e.apiBy([]byte(e.ends(0, []string{"kubeconfig", e.Name})))
}

func (e *environment) apiBy(kubeconfig []byte) kubernetes.Interface {
	e.t.Helper()
	config, err := clientcmd.RESTConfigFromKubeConfig(kubeconfig)
	if err != nil {
		e.t.Fatal(err)
	}
	config.Timeout = 20 * time.Second
	api, err := kubernetes.NewForConfig(config)
	if err != nil {
		e.t.Fatal(err)
	}
	return api
}

// says writes something with this name into the cluster.
func (e *environment) says(api kubernetes.Interface, name string) {
	e.t.Helper()
	made := &corev1.ConfigMap{ObjectMeta: metav1.ObjectMeta{Namespace: "default", Name: name}}
	if _, err := api.CoreV1().ConfigMaps("default").Create(e.t.Context(), made, metav1.CreateOptions{}); err != nil {
		e.t.Fatal(err)
	}
}

// pods are the UIDs of the system's that run.
func (e *environment) pods(api kubernetes.Interface) map[string]string {
	e.t.Helper()
	list, err := api.CoreV1().Pods("").List(e.t.Context(), metav1.ListOptions{})
	if err != nil {
		e.t.Fatal(err)
	}
	uids := map[string]string{}
	for _, p := range list.Items {
		if p.Status.Phase == corev1.PodRunning {
			uids[p.Namespace+"/"+p.Name] = string(p.UID)
		}
	}
	if len(uids) == 0 {
		e.t.Fatal("no pod runs")
	}
	return uids
}

// restored wants what was there at the backup and not what came later; the Nodes to be Ready and the pods of then to run; and etcd's
// members to be those of the hosts, and well.
func (e *environment) restored(api kubernetes.Interface, ran map[string]string, also ...string) {
	e.t.Helper()
	for _, name := range append([]string{"first"}, also...) {
		if _, err := api.CoreV1().ConfigMaps("default").Get(e.t.Context(), name, metav1.GetOptions{}); err != nil {
			e.t.Errorf("what was there at the backup is not: %v", err)
		}
	}
	if _, err := api.CoreV1().ConfigMaps("default").Get(e.t.Context(), "second", metav1.GetOptions{}); !apierrors.IsNotFound(err) {
		e.t.Errorf("what came after the backup is there (%v)", err)
	}
	missing := "nothing was seen"
	err := wait.PollUntilContextTimeout(e.t.Context(), time.Second, 4*time.Minute, true, func(ctx context.Context) (bool, error) {
		missing = notWell(ctx, api, ran, len(e.Hosts))
		return missing == "", nil
	})
	if err != nil {
		e.t.Errorf("after the restore: %s (%v)", missing, err)
	}
	for _, h := range e.Hosts {
		if !e.hasMember(h) {
			continue
		}
		out := e.sh(h, `cd /etc/kubexm/etcd/ssl && etcdctl --endpoints=https://127.0.0.1:2379 --cacert=ca.pem --cert=admin-$(hostname).pem `+
			`--key=admin-$(hostname)-key.pem endpoint health --cluster`)
		if strings.Contains(out, "is unhealthy") || !strings.Contains(out, "is healthy") {
			e.t.Errorf("etcd on %s: %s", h.Name, out)
		}
		e.sh(h, "! ls -d /var/lib/kubexm/etcd-restore && ls -d /var/lib/etcd/replaced.*")
	}
}

// hasMember reports whether a host has a member of etcd.
func (e *environment) hasMember(h *hosts.Host) bool {
	_, err := h.Exec(e.t.Context(), "test", "-e", "/var/lib/etcd/member")
	return err == nil
}

// notWell is what is not yet as it was: a Node that is not Ready, or a pod that does not run or is another one.
func notWell(ctx context.Context, api kubernetes.Interface, ran map[string]string, nodes int) string {
	list, err := api.CoreV1().Nodes().List(ctx, metav1.ListOptions{})
	if err != nil {
		return err.Error()
	}
	ready := 0
	for _, n := range list.Items {
		for _, c := range n.Status.Conditions {
			if c.Type == corev1.NodeReady && c.Status == corev1.ConditionTrue {
				ready++
			}
		}
	}
	if ready != nodes {
		return "not all Nodes are Ready"
	}
	for key, uid := range ran {
		namespace, name, _ := strings.Cut(key, "/")
		p, err := api.CoreV1().Pods(namespace).Get(ctx, name, metav1.GetOptions{})
		if err != nil {
			return err.Error()
		}
		mirror := p.Annotations[corev1.MirrorPodAnnotationKey] != "" // made anew by the kubelet, with the manifest that was restored
		if p.Status.Phase != corev1.PodRunning || string(p.UID) != uid && !mirror {
			return key + " does not run, or is another one"
		}
	}
	return ""
}
