// Copyright 2026 The cluster-api-provider-kubexm Authors.
// SPDX-License-Identifier: Apache-2.0

//go:build e2e

package e2e

import (
	"bytes"
	"context"
	"fmt"
	"os"
	"slices"
	"strings"
	"syscall"
	"testing"
	"time"

	. "github.com/onsi/gomega"
	admissionregistrationv1 "k8s.io/api/admissionregistration/v1"
	"k8s.io/utils/ptr"
	clusterv1 "sigs.k8s.io/cluster-api/api/core/v1beta2"
	"sigs.k8s.io/controller-runtime/pkg/client"

	bootstrapv1 "github.com/mensylisir/cluster-api-provider-kubexm/bootstrap/api/v1beta1"
)

// takingOver is how long it may take until the second manager works on a host that the first has left in the midst of a step: the
// lease must run out, and so must the host's patience with the first.
const takingOver = 3 * time.Minute

// TestHandover has two bootstrap managers of which one leads. It is frozen while it works on a host, longer than its lease; the other
// takes over, and goes on where the host stands. Thawed, the first ends, and has not touched the host again.
func TestHandover(t *testing.T) {
	e := start(t)
	t.Cleanup(func() {
		if t.Failed() {
			t.Log(e.explain(context.Background()))
		}
	})
	ctx := t.Context()
	first := e.bootstrap()
	second := e.beside(first)
	e.providers = append(slices.DeleteFunc(slices.Clone(e.providers), func(p *provider) bool { return p == first }), second)
	leads := []string{"--leader-elect", "--leader-elect-namespace=" + first.namespace()}
	e.startManager(first, leads...)
	t.Cleanup(func() { _ = first.process.Stop(context.Background()) })
	e.Eventually(func() error { return first.ready(ctx) }).Should(Succeed())
	for _, p := range e.providers {
		if p == second {
			e.startManager(p, leads...)
		} else {
			e.startManager(p)
		}
		e.Eventually(func() error { return p.ready(ctx) }).Should(Succeed())
	}
	e.redirectWebhooks(first, second) // requests do not end at the one that is frozen

	e.apply(e.inventory()...)
	e.apply(e.cluster(clusterName)...)
	var before bootstrapv1.KubexmConfigStatus
	const some = 8
	e.Eventually(func(g Gomega) {
		before = e.controlPlaneConfig(ctx, g).Status
		g.Expect(ptr.Deref(before.Progress.CompletedSteps, 0)).To(BeNumerically(">=", some))
		g.Expect(before.Operation(bootstrapv1.ConvergeOperation).EndTime.IsZero()).To(BeTrue())
	}, converging).Should(Succeed())
	e.Expect(syscall.Kill(-first.process.PID(), syscall.SIGSTOP)).To(Succeed())
	frozen := time.Now()
	e.Eventually(func(g Gomega) {
		now := e.controlPlaneConfig(ctx, g).Status
		began := before.Operation(bootstrapv1.ConvergeOperation).StartTime.Time
		g.Expect(now.Operation(bootstrapv1.ConvergeOperation).StartTime.After(began)).To(BeTrue(), "no new run yet")
		g.Expect(ptr.Deref(now.Progress.CompletedSteps, 0)).To(BeNumerically(">", *before.Progress.CompletedSteps), "the new run has changed nothing yet")
	}, takingOver).Should(Succeed())
	t.Logf("frozen at %d of %d steps; the other went on after %s", *before.Progress.CompletedSteps, *before.Progress.TotalSteps, time.Since(frozen).Round(time.Second))

	e.Expect(syscall.Kill(-first.process.PID(), syscall.SIGCONT)).To(Succeed())
	e.Eventually(first.process.Done()).Should(BeClosed(), "who has lost the lease ends")
	said, err := os.ReadFile(first.process.LogPath())
	e.Expect(err).NotTo(HaveOccurred())
	e.Expect(string(said)).To(ContainSubstring("leader election lost"))
	e.expectReady(1)
	e.expectOneWriterAtATime()

	e.requestDeletion(clusterName)
	e.expectDeleted(clusterName, converging)
	e.expectReset(e.names()...)
}

// beside is another manager of a provider: it has the same rights and the same certificate.
func (e *environment) beside(p *provider) *provider {
	other := *p
	other.dir, other.process = p.dir+"-2", nil
	other.webhooks, other.health, other.telemetry = e.freePort(), e.freePort(), e.freePort()
	e.Expect(os.CopyFS(other.dir, os.DirFS(p.dir))).To(Succeed())
	e.Expect(os.Chmod(other.dir, 0o700)).To(Succeed())
	return &other
}

// redirectWebhooks has the API server ask another manager, as a Service does.
func (e *environment) redirectWebhooks(from, to *provider) {
	ctx, ours := e.t.Context(), client.MatchingLabels{clusterv1.ProviderNameLabel: "bootstrap-kubexm"}
	redirect := func(c *admissionregistrationv1.WebhookClientConfig) {
		*c.URL = strings.Replace(*c.URL, fmt.Sprintf(":%d/", from.webhooks), fmt.Sprintf(":%d/", to.webhooks), 1)
	}
	validating, mutating := &admissionregistrationv1.ValidatingWebhookConfigurationList{},
		&admissionregistrationv1.MutatingWebhookConfigurationList{}
	e.Expect(e.api.List(ctx, validating, ours)).To(Succeed())
	e.Expect(e.api.List(ctx, mutating, ours)).To(Succeed())
	e.Expect(validating.Items).NotTo(BeEmpty())
	e.Expect(mutating.Items).NotTo(BeEmpty())
	for i := range validating.Items {
		for j := range validating.Items[i].Webhooks {
			redirect(&validating.Items[i].Webhooks[j].ClientConfig)
		}
		e.Expect(e.api.Update(ctx, &validating.Items[i])).To(Succeed())
	}
	for i := range mutating.Items {
		for j := range mutating.Items[i].Webhooks {
			redirect(&mutating.Items[i].Webhooks[j].ClientConfig)
		}
		e.Expect(e.api.Update(ctx, &mutating.Items[i])).To(Succeed())
	}
}

// expectOneWriterAtATime reads the control plane host's record of what was changed: no run goes on after another has begun.
func (e *environment) expectOneWriterAtATime() {
	e.t.Helper()
	out, err := e.pool.Hosts[0].Exec(e.t.Context(), "cat", "/var/lib/kubexm/undo.log")
	e.Expect(err).NotTo(HaveOccurred())
	var runs []string
	for line := range bytes.Lines([]byte(out)) {
		if fields := strings.Fields(string(line)); len(fields) > 2 && fields[0] == "+" {
			runs = append(runs, fields[2])
		}
	}
	runs = slices.Compact(runs)
	e.Expect(len(runs)).To(BeNumerically(">", 1), "runs that changed the host")
	once := slices.Compact(slices.Sorted(slices.Values(runs)))
	e.Expect(once).To(HaveLen(len(runs)), "runs took turns: %v", runs)
}
