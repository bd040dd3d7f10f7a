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
	// marks are lines, by host: each file with its inode, mode, size and when that or its content was last changed, each unit, and each
	// process of ours.
	marks map[string][]string
	// pods are all Pods, with how often their containers were started.
	pods []string
	// secrets are the digests of what the Secrets have, by name.
	secrets map[string]string
}

// marksScript reads no file: who writes one cannot choose its ctime, and to hash all of them takes minutes where ten hosts share two cores.
// It leaves out what is in motion while nobody touches a cluster.
const marksScript = `set -e
	for unit in containerd kubelet kube-proxy kube-apiserver kube-controller-manager kube-scheduler etcd haproxy keepalived; do
		echo process $unit $(systemctl show $unit --property=MainPID,NRestarts,ExecMainStartTimestampMonotonic)
	done
	systemctl list-units --type=service,mount,socket,timer --state=active,failed --plain --no-legend --no-pager |
		awk '$1 ~ /^(containerd|kube|etcd|haproxy|keepalived)/ { print "unit", $1, $2, $3 }'
	find / \( -path /proc -o -path /sys -o -path /dev -o -path /run -o -path /tmp -o -path /var/tmp -o -path /var/log -o -path /var/cache \
		-o -path /var/lib/etcd -o -path /var/lib/containerd -o -path /var/lib/kubelet/pods -o -path /var/lib/systemd -o -path /var/lib/chrony \
		-o -path /var/lib/sudo -o -path /var/lib/apt \) -prune -o ! -type d -printf 'file %p %i %m %s %C@\n'`

// stands says how the cluster is.
func (e *environment) stands() standing {
	e.t.Helper()
	ctx := e.t.Context()
	now := standing{marks: map[string][]string{}, secrets: map[string]string{}}
	for _, h := range e.pool.Hosts {
		now.marks[h.Name] = e.marksOf(h)
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

// marksOf lists until two lists in a row are equal, a few times at most: under load, a file system such as fuse-overlayfs was seen to pass
// over an entry.
func (e *environment) marksOf(h *hosts.Host) []string {
	e.t.Helper()
	var marks []string
	for range 5 {
		out, err := h.Exec(e.t.Context(), "sh", "-c", marksScript)
		e.Expect(err).NotTo(HaveOccurred())
		again := slices.Sorted(strings.SplitSeq(out, "\n"))
		if slices.Equal(again, marks) {
			break
		}
		marks = again
	}
	return marks
}

func started(pod *corev1.Pod) string {
	restarts := int32(0)
	for _, c := range pod.Status.ContainerStatuses {
		restarts += c.RestartCount
	}
	return fmt.Sprintf("%s/%s %s on %s, restarted %d times", pod.Namespace, pod.Name, pod.UID, pod.Spec.NodeName, restarts)
}

// onlyIn are the lines of one that another has not. Both are sorted.
func onlyIn(one, another []string) []string {
	return slices.DeleteFunc(slices.Clone(one), func(line string) bool {
		_, found := slices.BinarySearch(another, line)
		return found
	})
}

// expectStands wants no host, Pod or Secret to be another than it was. A Machine that was made anew for a host has a Secret of its own.
func (e *environment) expectStands(before standing) {
	e.t.Helper()
	now := e.stands()
	for _, name := range e.names() {
		e.Expect(len(before.marks[name])).To(BeNumerically(">", 1000), "what %s was", name)
		for _, line := range onlyIn(now.marks[name], before.marks[name]) {
			e.t.Errorf("host %s has now: %s", name, line)
		}
		for _, line := range onlyIn(before.marks[name], now.marks[name]) {
			e.t.Errorf("host %s had: %s", name, line)
		}
	}
	for _, pod := range now.pods {
		if !slices.Contains(before.pods, pod) {
			e.t.Errorf("Pod %s was not so before", pod)
		}
	}
	e.Expect(now.secrets).NotTo(BeEmpty())
	for name, digest := range now.secrets {
		if was, there := before.secrets[name]; there && was != digest {
			e.t.Errorf("the Secret %s is another", name)
		}
	}
}
