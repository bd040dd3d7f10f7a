// Copyright 2026 The cluster-api-provider-kubexm Authors.
// SPDX-License-Identifier: Apache-2.0

//go:build e2e

package e2e

import (
	"context"
	"crypto/sha256"
	"encoding/hex"
	"encoding/json"
	"fmt"
	"regexp"
	"slices"
	"strings"

	. "github.com/onsi/gomega"
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/mensylisir/cluster-api-provider-kubexm/test/hosts"
)

// standing is a cluster that runs, seen from its hosts.
type standing struct {
	snapshots map[string]hosts.Snapshot
	// marks are lines, by host: each file of ours with its inode and when it was last touched, and each process of ours.
	marks map[string][]string
	// pods are all Pods, with how often their containers were started.
	pods []string
	// secrets are the digests of what the cluster's Secrets have, by name.
	secrets map[string]string
}

// inMotion is what a cluster changes by itself while it is left alone.
var inMotion = regexp.MustCompile(`^(process|cgroup) |^file /var/lib/(etcd|containerd|kubelet/pods)/`)

// units are all services of ours; who is restarted has another process.
const units = "containerd kubelet kube-proxy kube-apiserver kube-controller-manager kube-scheduler etcd haproxy keepalived"

const marksScript = `set -e
	for unit in ` + units + `; do
		echo $unit $(systemctl show $unit --property=MainPID,NRestarts,ExecMainStartTimestampMonotonic)
	done
	find /etc /opt /usr/local /var/lib/kubexm /var/lib/kubelet -path /var/lib/kubelet/pods -prune -o -type f -printf '%p %i %C@\n' | sort`

// stands says how the cluster is.
func (e *environment) stands() standing {
	e.t.Helper()
	ctx := e.t.Context()
	now := standing{snapshots: e.snapshots(e.names()...), marks: map[string][]string{}, secrets: map[string]string{}}
	for _, h := range e.pool.Hosts {
		out, err := h.Exec(ctx, "sh", "-c", marksScript)
		e.Expect(err).NotTo(HaveOccurred())
		now.marks[h.Name] = strings.Split(strings.TrimSpace(out), "\n")
	}
	pods, err := e.workload().CoreV1().Pods("").List(ctx, metav1.ListOptions{})
	e.Expect(err).NotTo(HaveOccurred())
	for i := range pods.Items {
		now.pods = append(now.pods, started(&pods.Items[i]))
	}
	slices.Sort(now.pods)
	secrets := &corev1.SecretList{}
	e.Expect(e.api.List(context.WithoutCancel(ctx), secrets, client.InNamespace(namespace))).To(Succeed())
	for i := range secrets.Items {
		content, err := json.Marshal(secrets.Items[i].Data)
		e.Expect(err).NotTo(HaveOccurred())
		sum := sha256.Sum256(content)
		now.secrets[secrets.Items[i].Name] = hex.EncodeToString(sum[:])
	}
	return now
}

func started(pod *corev1.Pod) string {
	restarts := int32(0)
	for _, c := range pod.Status.ContainerStatuses {
		restarts += c.RestartCount
	}
	return fmt.Sprintf("%s/%s %s on %s, restarted %d times", pod.Namespace, pod.Name, pod.UID, pod.Spec.NodeName, restarts)
}

// expectStands wants no host, Pod or Secret to be another than it was.
func (e *environment) expectStands(before standing) {
	e.t.Helper()
	now := e.stands()
	for _, name := range e.names() {
		for _, difference := range hosts.Diff(before.snapshots[name], now.snapshots[name]) {
			if !inMotion.MatchString(difference) {
				e.t.Errorf("host %s: %s", name, difference)
			}
		}
		for _, line := range now.marks[name] {
			if !slices.Contains(before.marks[name], line) {
				e.t.Errorf("host %s was touched: %s", name, line)
			}
		}
	}
	for _, pod := range now.pods {
		if !slices.Contains(before.pods, pod) {
			e.t.Errorf("Pod %s was not so before", pod)
		}
	}
	e.Expect(now.secrets).NotTo(BeEmpty())
	for name, digest := range now.secrets {
		if before.secrets[name] != digest {
			e.t.Errorf("the Secret %s is another", name)
		}
	}
}
