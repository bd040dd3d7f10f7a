// Copyright 2026 The cluster-api-provider-kubexm Authors.
// SPDX-License-Identifier: Apache-2.0

package reconcilers

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"time"

	"github.com/mensylisir/cluster-api-provider-kubexm/bootstrap/door"
	"github.com/mensylisir/cluster-api-provider-kubexm/bootstrap/infra"
	"github.com/mensylisir/cluster-api-provider-kubexm/pkg/artifact"
	"github.com/mensylisir/cluster-api-provider-kubexm/pkg/engine"
	"github.com/mensylisir/cluster-api-provider-kubexm/pkg/event"
	"github.com/mensylisir/cluster-api-provider-kubexm/pkg/host"
	"github.com/mensylisir/cluster-api-provider-kubexm/pkg/host/bmc"
	"github.com/mensylisir/cluster-api-provider-kubexm/pkg/pipeline"
	"github.com/mensylisir/cluster-api-provider-kubexm/pkg/pki"
	"github.com/mensylisir/cluster-api-provider-kubexm/pkg/plan"
	"github.com/mensylisir/cluster-api-provider-kubexm/pkg/preflight"
	"github.com/mensylisir/cluster-api-provider-kubexm/pkg/spec"
	"github.com/mensylisir/cluster-api-provider-kubexm/pkg/step"
)

// outcome is what a job on a host came to.
type outcome struct {
	// input is the digest of what the host was to become, and version its version of Kubernetes.
	input, version string
	// err is why it did not, nil if it did.
	err error
	// planFailed is whether err is about the plan, not about the host.
	planFailed bool
	// begun is whether a run has changed something, or may have.
	begun bool

	// reset is how the host's management controller has reset the machine, "" if it has not.
	reset bmc.ResetType

	// checked is whether the host was examined before its first change, and problems what was found.
	checked  bool
	problems []preflight.Problem

	// plan is nil if none was made.
	plan *plan.Plan
	// renewals are the certificates that are renewed on the host, as it must be.
	renewals []pipeline.Renewal
	// report is what the run or the look came to.
	report engine.Report
	// system is what was last seen of the host, nil if it never was, and reached whether it answered this time.
	system  *host.System
	reached bool

	// members is the digest of the members that the target was made of.
	members string

	// kept is what became of the host's logs, where they were to be kept.
	kept kept
	// note is what the operation says of itself that has succeeded, "" if nothing.
	note string
	// notForgotten is why the host's Node was not deleted after the reset, nil if it was or needs not be.
	notForgotten error
	// asked is when it was asked for, the zero time if nobody did.
	asked time.Time
	// reportOnly is whether it says nothing of what is to be done.
	reportOnly bool
	// enrolled is where the host was found, and what it is known by since.
	enrolled enrolled
	// recovered are the key pairs that were read back from the host, until their Secrets are written.
	recovered pki.Authorities
}

// errPreflight says that problems has errors.
var errPreflight = errors.New("the host cannot become a Node as it is")

// job is all that a host's run needs; it outlives the reconcile that made it.
type job struct {
	input string
	// lasting is the digest of what the host must be that is the same after objects were moved.
	lasting string
	// asked is when it was asked for, the zero time if nobody did.
	asked time.Time
	// reportOnly is whether a look is for anyone who asked for it alone: what the host must be was not run yet, or fails.
	reportOnly bool

	target spec.Target
	// was is the version of Kubernetes that the host was last brought to, and apiServers the oldest that the cluster's API
	// servers have; "" if there is none.
	was, apiServers string
	// members is the digest of the members that the target was made of.
	members string
	bundle  func(context.Context) (*artifact.Bundle, error)
	planner Planner
	// options are the engine's, but for Artifacts and Reader.
	options engine.Options
	// remembered is what was last seen of the host, nil if nothing was.
	remembered *host.System
	// preflight is whether the host is examined before anything is changed.
	preflight bool
	// keep keeps the host's logs before it is reset, nil if they are not to be kept.
	keep func(context.Context, host.Host) kept
	// opened is whether the bootstrap data has opened the host to us, which is to be undone when it is reset.
	opened bool
	// forget deletes the host's Node after it was reset, nil if that is not to be done.
	forget func(context.Context) error
	// isLate is whether a run may not begin any more that was admitted, nil if it may at any time.
	isLate func() bool
}

// lost is the result where it panics.
func (j *job) lost(err error) outcome { return outcome{input: j.input, asked: j.asked, err: err} }

// converge makes the host so. It plans from what is remembered of the host, so that a converged host costs one exchange,
// and once more if the host turns out to be another than remembered.
func (j *job) converge(ctx context.Context, tell event.Reader) outcome {
	if j.isLate != nil && j.isLate() {
		late := &engine.Error{Intent: converging, Cluster: j.target.ClusterName, Cause: errTooLate}
		return outcome{input: j.input, asked: j.asked, err: late}
	}
	begun := false
	out := j.do(ctx, tell, func(e *engine.Engine, p *plan.Plan) (engine.Report, error) {
		report, err := e.Run(ctx, p)
		begun = begun || hasBegun(p, &report, err)
		return report, err
	})
	out.begun = begun
	return out
}

// look compares the host with its plan and changes nothing.
func (j *job) look(ctx context.Context, tell event.Reader) outcome {
	return j.do(ctx, tell, func(e *engine.Engine, p *plan.Plan) (engine.Report, error) { return e.Check(ctx, p) })
}

// follow makes of the host's plan what keeps it up with the others of its cluster.
func (j *job) follow(ctx context.Context, tell event.Reader) outcome {
	return j.do(ctx, tell, func(e *engine.Engine, p *plan.Plan) (engine.Report, error) {
		restricted, err := p.Restrict(followsOthers)
		if err != nil {
			return engine.Report{}, err
		}
		return e.Run(ctx, restricted)
	})
}

func (j *job) do(ctx context.Context, tell event.Reader, act func(*engine.Engine, *plan.Plan) (engine.Report, error)) outcome {
	out := outcome{
		input: j.input, version: j.target.KubernetesVersion, system: j.remembered,
		members: j.members, asked: j.asked, reportOnly: j.reportOnly,
	}
	bundle, err := j.bundle(ctx)
	if err != nil {
		out.err, out.planFailed = fmt.Errorf("artifacts: %w", err), true
		return out
	}
	if out.renewals, out.err = pipeline.Renewals([]spec.Target{j.target}, nil); out.err != nil {
		out.planFailed = true
		return out
	}
	j.options.Artifacts = step.FromBundle(bundle)
	j.options.Reader = event.Readers(j.options.Reader, tell)
	e := engine.New(j.options)
	if j.preflight || j.remembered == nil {
		if j.examine(ctx, e, &out); out.err != nil {
			return out
		}
	}
	for range 2 {
		planned := *out.system
		node := pipeline.Node{Target: j.target, System: planned, Was: j.was, APIServers: j.apiServers}
		if out.plan, out.err = j.planner(node, bundle); out.err != nil {
			out.planFailed = true
			return out
		}
		out.report, out.err = act(e, out.plan)
		if seen := systemIn(out.report); seen != nil {
			out.system, out.reached = seen, true
		}
		if !pipeline.Stale(planned, *out.system) {
			break
		}
	}
	return out
}

// examine observes the host for the first time, and says what stands in the way of changing it.
func (j *job) examine(ctx context.Context, e *engine.Engine, out *outcome) {
	name := j.target.Host.Name
	facts, err := e.Look(ctx, []string{name}, func(string) host.Query { return preflight.Query(j.target) })
	seen := facts[name]
	if seen != nil {
		out.system, out.reached = systemOf(seen), true
	}
	if err != nil {
		out.err = err
		return
	}
	// A host that says itself that it is the cluster's, or that is adopted, is past this: its ports are taken by what was started
	// there. Where the run stands is in its journal, which alone does not say whose it is.
	claim, err := j.ownership(ctx)
	if err != nil {
		out.err = err
		return
	}
	if !j.preflight || claim.Owns(seen) || claim.Adopts(seen) {
		return
	}
	out.checked, out.problems = true, preflight.Check(j.target, seen, claim)
	if preflight.Failed(out.problems) {
		out.err = errPreflight
	}
}

// Planner plans what a host must be.
type Planner func(pipeline.Node, *artifact.Bundle) (*plan.Plan, error)

// Pipelines plans by what the host is for.
func Pipelines(node pipeline.Node, bundle *artifact.Bundle) (*plan.Plan, error) {
	switch role := node.Target.Host.Role; {
	case role == spec.RoleControlPlane && node.Target.BootstrapMode == spec.BootstrapJoin:
		return pipeline.JoinControlPlane(node, bundle)
	case role == spec.RoleControlPlane:
		return pipeline.CreateControlPlane(node, bundle)
	case role == spec.RoleEtcd:
		return pipeline.EtcdMember(node, bundle)
	case role == spec.RoleLoadBalancer:
		return pipeline.LoadBalancer(node, bundle)
	}
	return pipeline.JoinWorker(node, bundle)
}

// reset makes the host what it was before we first changed it.
func (j *job) reset(ctx context.Context, tell event.Reader) outcome {
	j.options.Reader = event.Readers(j.options.Reader, tell)
	out := outcome{}
	if j.keep != nil {
		out.kept = j.keeps(ctx)
	}
	out.report, out.err = engine.New(j.options).Undo(ctx, engine.Undo{
		Intent: "ResetNode", Cluster: j.target.ClusterName, Hosts: []string{j.target.Host.Name},
	})
	out.system = systemIn(out.report)
	out.reached = out.system != nil
	if out.err == nil && j.forget != nil {
		out.notForgotten = j.forget(ctx)
	}
	if out.err == nil && j.opened {
		out.err = j.closeDoor(ctx)
	}
	return out
}

// closeDoor undoes what the bootstrap data has made. Nobody gets in afterwards.
func (j *job) closeDoor(ctx context.Context) error {
	h, err := j.options.Dial(ctx, j.target.Host.Name)
	if err != nil {
		return err
	}
	return errors.Join(door.Close(ctx, h), h.Close())
}

// keeps keeps the host's logs.
func (j *job) keeps(ctx context.Context) kept {
	h, err := j.options.Dial(ctx, j.target.Host.Name)
	if err != nil {
		return kept{err: err}
	}
	k := kept{err: admits(ctx, h, j.ownership)}
	if k.err == nil {
		k = j.keep(ctx, h)
	}
	if err := h.Close(); err != nil && k.err == nil && k.file == "" {
		k.err = err
	}
	return k
}

// admits returns nil if the host may be touched by whom it is claimed for: what it has logged, and what a reboot ends there, may be
// another cluster's.
func admits(ctx context.Context, h host.Host, ownership func(context.Context) (host.Ownership, error)) error {
	claim, err := ownership(ctx)
	if err != nil {
		return err
	}
	seen, err := h.Observe(ctx, host.Query{})
	if err != nil {
		return err
	}
	return claim.Check(h.Name(), seen)
}

// ownership says for whom the job's host is changed.
func (j *job) ownership(ctx context.Context) (host.Ownership, error) {
	if j.options.Ownership == nil {
		return host.Ownership{}, nil
	}
	return j.options.Ownership(ctx, j.target.Host.Name)
}

// onHost are the counts of the host's own nodes.
func (o *outcome) onHost() engine.Counts {
	if len(o.report.Hosts) == 0 {
		return engine.Counts{}
	}
	return o.report.Hosts[0].Counts
}

// hostConverged reports whether the host itself is so, whatever the cluster makes of it.
func (o *outcome) hostConverged() bool {
	c := o.onHost()
	return c.Total > 0 && c.Skipped+c.Changed == c.Total
}

// restored reports whether the run has rolled back what was changed on the host.
func (o *outcome) restored() bool {
	return len(o.report.Hosts) > 0 && o.report.Hosts[0].Restored > 0
}

func systemIn(r engine.Report) *host.System {
	if len(r.Hosts) == 0 || r.Hosts[0].Facts == nil {
		return nil
	}
	return systemOf(r.Hosts[0].Facts)
}

// systemOf is a copy: it is remembered for as long as the host is ours, and a pointer into the facts would keep all that was seen of
// the host, the content of files with it.
func systemOf(f *host.Facts) *host.System {
	system := f.System
	return &system
}

// factsDigest is the digest of what plans are made from and people would want to see a change of.
func factsDigest(s *host.System) (string, error) {
	raw, err := json.Marshal([]any{s.OSID, s.OSVersion, s.Arch, s.Kernel, s.Container, s.CgroupVersion, s.CPUs, s.MemoryBytes,
		s.Nameservers, s.UpstreamNameservers, s.MissingCapabilities})
	if err != nil {
		return "", err
	}
	return digest(raw), nil
}

// contactOf is what a job's outcome says of the way to the host, nil if nothing.
func contactOf(o *outcome) *infra.Reachability {
	if reason := unreachable(o.err); reason != "" {
		return &infra.Reachability{Err: rootOf(o.err), Reason: reason}
	}
	if !o.reached {
		return nil
	}
	return &infra.Reachability{System: o.system}
}
