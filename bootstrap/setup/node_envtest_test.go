// Copyright 2026 The cluster-api-provider-kubexm Authors.
// SPDX-License-Identifier: Apache-2.0

//go:build envtest

package setup_test

import (
	"bytes"
	"context"
	"io"
	"net"
	"net/url"
	"os"
	"path/filepath"
	"testing"
	"time"

	. "github.com/onsi/gomega"
	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/client-go/tools/clientcmd"
	clusterv1 "sigs.k8s.io/cluster-api/api/core/v1beta2"
	capisecret "sigs.k8s.io/cluster-api/util/secret"
	"sigs.k8s.io/controller-runtime/pkg/client"
)

// way is a way to an API server that can be cut.
type way struct {
	net.Listener
	to     string
	ctx    context.Context
	cancel context.CancelFunc
}

func newWay(t *testing.T, to string) *way {
	t.Helper()
	listener, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	w := &way{Listener: listener, to: to}
	w.ctx, w.cancel = context.WithCancel(context.Background())
	t.Cleanup(w.cut)
	go func() {
		for {
			in, err := listener.Accept()
			if err != nil {
				return
			}
			go w.carry(in)
		}
	}()
	return w
}

// carry carries one connection until the way is cut.
func (w *way) carry(in net.Conn) {
	defer in.Close()
	out, err := net.Dial("tcp", w.to)
	if err != nil {
		return
	}
	defer out.Close()
	ctx, cancel := context.WithCancel(w.ctx)
	defer cancel()
	for _, ends := range [][2]net.Conn{{in, out}, {out, in}} {
		go func() {
			defer cancel()
			_, _ = io.Copy(ends[0], ends[1]) // how it ends says nothing
		}()
	}
	<-ctx.Done()
}

func (w *way) cut() {
	_ = w.Close()
	w.cancel()
}

// TestNodeGoesWithItsHost: the Node of a host that is reset is deleted, although the connection that Cluster API has is gone, as
// it is when the host was the one with the API server that the kubeconfig led to. Else the next Machine on the host would have a
// Node that is cordoned.
func TestNodeGoesWithItsHost(t *testing.T) {
	t.Parallel() // most of it is waiting
	f := newFleet(t, 2)
	defer f.explain()
	direct, err := os.ReadFile(filepath.Join(f.dir, "kubeconfig"))
	f.Expect(err).NotTo(HaveOccurred())
	config, err := clientcmd.RESTConfigFromKubeConfig(direct)
	f.Expect(err).NotTo(HaveOccurred())
	server, err := url.Parse(config.Host)
	f.Expect(err).NotTo(HaveOccurred())
	w := newWay(t, server.Host)
	detour := bytes.ReplaceAll(direct, []byte(server.Host), []byte(w.Addr().String()))
	f.Expect(detour).NotTo(Equal(direct))
	kubeconfig := &corev1.Secret{
		ObjectMeta: metav1.ObjectMeta{
			Name: capisecret.Name("prod", capisecret.Kubeconfig), Labels: map[string]string{clusterv1.ClusterNameLabel: "prod"},
		},
		Type: clusterv1.ClusterSecretType, Data: map[string][]byte{capisecret.KubeconfigDataName: detour},
	}
	f.create(kubeconfig)
	f.declare()
	f.Eventually(f.readyConfigs, patience, 50*time.Millisecond).Should(Equal(2))
	f.Eventually(f.joined, patience, 50*time.Millisecond).Should(Equal(2))
	_, machine := f.worker(f)
	node := &corev1.Node{}
	f.Expect(f.api.Get(t.Context(), client.ObjectKey{Name: machine.Status.NodeRef.Name}, node)).To(Succeed())

	w.cut()
	kubeconfig.Data[capisecret.KubeconfigDataName] = direct
	f.Expect(f.api.Update(t.Context(), kubeconfig)).To(Succeed())
	before := machine.DeepCopy()
	machine.Annotations[clusterv1.ExcludeNodeDrainingAnnotation] = "" // nobody could drain it
	machine.Annotations[clusterv1.ExcludeWaitForNodeVolumeDetachAnnotation] = ""
	f.Expect(f.api.Patch(t.Context(), machine, client.MergeFrom(before))).To(Succeed())
	f.scale(0)
	f.Eventually(func() bool {
		return apierrors.IsNotFound(f.api.Get(t.Context(), client.ObjectKeyFromObject(machine), machine))
	}, patience, 50*time.Millisecond).Should(BeTrue())
	f.Expect(apierrors.IsNotFound(f.api.Get(t.Context(), client.ObjectKeyFromObject(node), node))).To(BeTrue(), "the Node is still there")
}
