// Copyright 2026 The cluster-api-provider-kubexm Authors.
// SPDX-License-Identifier: Apache-2.0

package reconcilers

import (
	"context"
	"slices"
	"strings"
	"time"

	ctrl "sigs.k8s.io/controller-runtime"

	bootstrapv1 "github.com/mensylisir/cluster-api-provider-kubexm/bootstrap/api/v1beta1"
	"github.com/mensylisir/cluster-api-provider-kubexm/pkg/certificate"
	"github.com/mensylisir/cluster-api-provider-kubexm/pkg/engine"
	"github.com/mensylisir/cluster-api-provider-kubexm/pkg/host"
	"github.com/mensylisir/cluster-api-provider-kubexm/pkg/pipeline"
	"github.com/mensylisir/cluster-api-provider-kubexm/pkg/spec"
)

// renewCertificates renews certificates of a host when an annotation asks for it, once for each time that is its value, however long they
// last, and also where nobody renews them by himself (certificates.renewal: Manual). It waits for no approval: who asks for it has given
// that.
func (r *KubexmConfigReconciler) renewCertificates() operation {
	return operation{
		name: bootstrapv1.RenewCertificatesOperation, checks: r.planned(), due: r.renewalIsDue, settle: r.settleRenewal,
	}
}

func (r *KubexmConfigReconciler) renewalIsDue(_ context.Context, s *scope) (*run, error) {
	asked := r.requested(s, bootstrapv1.RenewCertificatesOperation, "CertificateRenewalFailed",
		"want a time, and certificates if not all, such as %s apiserver,kubelet")
	if asked.IsZero() {
		return nil, nil
	}
	names, err := s.config.AskedCertificates()
	ask := renewal{names: names, asked: asked, system: s.planned.remembered}
	return s.engineRun(asked, s.role() != spec.RoleWorker, func(ctx context.Context, options engine.Options, target spec.Target) outcome {
		if err != nil {
			return outcome{err: err, planFailed: true, asked: asked}
		}
		return ask.do(ctx, options, target)
	}), nil
}

// renewal is what is asked of a host.
type renewal struct {
	// names are which certificates, none for all.
	names []spec.CertificateName
	asked time.Time
	// system is what was last seen of the host, nil if nothing was.
	system *host.System
}

func (r *renewal) do(ctx context.Context, options engine.Options, target spec.Target) outcome {
	out := outcome{asked: r.asked}
	refused := func(err error) outcome {
		out.err, out.planFailed = err, true
		return out
	}
	options.Also = certificate.Query() // how long they last afterwards is shown at once
	node := pipeline.Node{Target: target}
	if node.System, out.err = r.seen(ctx, options, target.Host.Name); out.err != nil {
		return out
	}
	names := make([]string, len(r.names))
	for i, name := range r.names {
		names[i] = string(name)
	}
	p, wanted, err := pipeline.RenewOn(node, names, r.asked)
	if err != nil {
		return refused(err)
	}
	if out.renewals, err = pipeline.Renewals([]spec.Target{target}, nil); err != nil {
		return refused(err)
	}
	out.report, out.err = engine.New(options).Run(ctx, p)
	if out.err == nil {
		out.note = noteOf(wanted, &out)
	}
	return out
}

// seen is what is remembered of the host, or else found out: by it, certificates name an address that nobody has declared.
func (r *renewal) seen(ctx context.Context, options engine.Options, name string) (host.System, error) {
	if r.system != nil {
		return *r.system, nil
	}
	facts, err := engine.New(options).Look(ctx, []string{name}, func(string) host.Query { return host.Query{} })
	if err != nil {
		return host.System{}, err
	}
	return *systemOf(facts[name]), nil
}

// noteOf says which certificates were renewed: of those that were asked for, those that are on the host, if that is known.
func noteOf(wanted []pipeline.Renewal, out *outcome) string {
	if len(out.report.Hosts) > 0 && out.report.Hosts[0].Facts != nil {
		if found, err := certificate.In(out.report.Hosts[0].Facts); err == nil {
			wanted = slices.DeleteFunc(slices.Clone(wanted), func(w pipeline.Renewal) bool {
				return !slices.ContainsFunc(found, func(f certificate.File) bool { return f.Path == w.Path })
			})
		}
	}
	if len(wanted) == 0 {
		return "the host has none of them: nothing was renewed"
	}
	names := make([]string, len(wanted))
	for i, w := range wanted {
		names[i] = w.Name
	}
	return strings.Join(names, ",") + " renewed"
}

// settleRenewal takes in what came of it, and when the host's certificates end. One that was interrupted goes on where it was.
func (r *KubexmConfigReconciler) settleRenewal(ctx context.Context, s *scope) (ctrl.Result, error) {
	showCertificates(ctx, s.config, &s.job.Result)
	return r.settleRequested(s, "CertificateRenewalFailed", "CertificatesRenewed"), nil
}
