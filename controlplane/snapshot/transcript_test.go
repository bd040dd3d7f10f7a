// Copyright 2026 The cluster-api-provider-kubexm Authors.
// SPDX-License-Identifier: Apache-2.0

package snapshot_test

import (
	"cmp"
	"errors"
	"fmt"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/cockroachdb/datadriven"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/utils/ptr"
	clusterv1 "sigs.k8s.io/cluster-api/api/core/v1beta2"
	"sigs.k8s.io/cluster-api/util/conditions"

	bootstrapv1 "github.com/mensylisir/cluster-api-provider-kubexm/bootstrap/api/v1beta1"
	controlplanev1 "github.com/mensylisir/cluster-api-provider-kubexm/controlplane/api/v1beta1"
	"github.com/mensylisir/cluster-api-provider-kubexm/controlplane/snapshot"
	"github.com/mensylisir/cluster-api-provider-kubexm/pkg/spec"
)

// TestTranscripts plays what becomes of control planes, in a small language:
//
//	new [replicas=3] …       a control plane of v1.35.4 behind a load balancer, whose Machines (a, b, c, …) are well
//	spec …                   what is declared: version= replicas= max-surge= strategy= template= after(=in) certificates=(days)
//	                         lb=no initialized=no topology= domains=(r1, r2)
//	                         max-retry= retry-period= min-healthy= converge-timeout= reboot-timeout= (seconds; the
//	                         last two 0 if it is not said)
//	restrict …               what disruptions wait for: approval window=(start/minutes) now=(time)
//	                         canary=approval, or for how many seconds
//	waits                    what is shown to who is to agree
//	approve                  somebody agrees to that
//	set <machine> …          what is so of a Machine: ill=(why) waits=(for what) failed=(why) lost=(why) maintained=(why) deleting
//	                         marked domain= rack=(of its host) ends=(days) did=(converge or reboot, as asked) well
//	                         changed held=(for which reason its host is not changed yet; for none: it may be)
//	unhealthy <machine> …    a MachineHealthCheck has found so: asked, if somebody wants it replaced
//	healthy <machine>        it has found otherwise
//	repair                     what becomes of the unhealthy Machine whose turn it is, and does it
//	cut                      the process ends after it has kept the record of a Machine, before it deletes that
//	later <duration>         time passes
//	worker <version>         a worker
//	etcd <host> <version>    a host of etcd's own
//	down [why=(…)]           the API server does not answer, or does again
//	host <machine>           it is known which host the Machine has, and the host is brought to its version: joins, if it is not yet
//	leave <machine> …        somebody deletes the Machine: drained, when its Node is, and stopped, when its API server has ended
//	lose                     all statuses are lost
//	members                  the members are declared, and shown with their phases, and who may go
//	observe <machine>        the Machine's host was brought to the members as they are declared
//	deaf [<machine>]         the etcd of one Machine does not say how it is when it is asked; of none, if none is named
//	apis [why=(…)] [used=(…)] which APIs are in use that other versions do not serve, or why that is not known; without either, none
//	accept <version>         somebody accepts that
//	full [<machine> …]       no snapshot of etcd can be saved on the hosts of these Machines; on all, if none is named
//	slow                     snapshots take their time, until saved is said
//	saved                    those that were asked for are saved
//	stranger [<name>]        etcd lists a member that no host has, or none
//	next                     what would be done now
//	act                      does it: the Machine is on its way then
//	settle                   all that is on its way is there, but what waits or has failed
//	run                      repairs, acts and settles until nothing is left to do, or that is blocked
func TestTranscripts(t *testing.T) {
	datadriven.Walk(t, "testdata/transcripts", func(t *testing.T, path string) {
		p := &play{t: t}
		datadriven.RunTest(t, path, func(t *testing.T, d *datadriven.TestData) string {
			out, err := p.command(d)
			if err != nil {
				d.Fatalf(t, "%v", err)
			}
			return out
		})
	})
}

// play is a control plane, and what is to become of it.
type play struct {
	t *testing.T
	*snapshot.ControlPlane
	made int
	ill  map[string]string
	down string
	// deaf is the Machine whose etcd is asked in vain, and stranger the name of a member that no host has.
	deaf, stranger string
	// full are the Machines on whose hosts no snapshot can be saved, and slow is whether those that can be take their time.
	full []string
	slow bool
}

func (p *play) command(d *datadriven.TestData) (string, error) {
	switch d.Cmd {
	case "new":
		return p.begin(d)
	case "spec":
		return "", p.declare(d)
	case "restrict":
		return "", p.restrict(d)
	case "waits":
		p.look()
		return p.waits(), nil
	case "approve":
		p.look()
		return "", p.approve()
	case "set":
		return "", p.set(d)
	case "unhealthy", "healthy":
		return "", p.check(d)
	case "repair":
		p.look()
		said, _ := p.repair()
		return said + p.show(), nil
	case "cut":
		p.look()
		return "", p.keep(p.Remediate().Record)
	case "later":
		passed, err := time.ParseDuration(d.CmdArgs[0].Key)
		p.Now = p.Now.Add(passed)
		return "", err
	case "worker":
		m := machine("worker", worker)
		m.Spec.Version = d.CmdArgs[0].Key
		p.Machines = append(p.Machines, m)
	case "etcd":
		config := inventory(d.CmdArgs[0].Key, spec.RoleEtcd)
		converged(&config, d.CmdArgs[1].Key)
		p.Configs = append(slices.DeleteFunc(p.Configs, func(c bootstrapv1.KubexmConfig) bool {
			return c.Spec.HostRef == config.Spec.HostRef
		}), config)
	case "down":
		p.down = ""
		if len(d.CmdArgs) > 0 {
			p.down = strings.Join(d.CmdArgs[0].Vals, ", ")
		}
	case "host", "leave", "observe":
		return "", p.host(d)
	case "lose":
		p.lose()
	case "members":
		return p.members(), nil
	case "deaf", "stranger":
		name := ""
		if len(d.CmdArgs) > 0 {
			name = d.CmdArgs[0].Key
		}
		if d.Cmd == "deaf" {
			p.deaf = name
			return "", nil
		}
		p.stranger = name
		p.answer(p.Own())
	case "apis":
		p.ask(d)
	case "accept":
		metav1.SetMetaDataAnnotation(&p.Object.ObjectMeta, controlplanev1.AcceptedRemovedAPIsAnnotation, d.CmdArgs[0].Key)
	case "full":
		p.full = []string{}
		for _, arg := range d.CmdArgs {
			p.full = append(p.full, arg.Key)
		}
	case "slow":
		p.slow = true
	case "saved":
		p.slow = false
		for i := range p.Machines {
			p.saveOn(&p.Machines[i])
		}
	case "next":
		p.look()
		said, decision := p.decide()
		return said + p.say(decision), nil
	case "act":
		p.look()
		said, decision := p.decide()
		said += p.say(decision)
		p.act(decision)
		return said + p.show(), nil
	case "settle":
		p.settle()
		return p.show(), nil
	case "run":
		return p.run(), nil
	default:
		return "", errors.New("unknown command " + d.Cmd)
	}
	return "", nil
}

func (p *play) begin(d *datadriven.TestData) (string, error) {
	p.ControlPlane = &snapshot.ControlPlane{
		Object: object(), Cluster: &clusterv1.Cluster{}, Templates: map[string]snapshot.Template{}, Now: born.AddDate(0, 1, 0),
	}
	p.made, p.ill, p.down, p.deaf, p.stranger = 0, map[string]string{}, "", "", ""
	p.full, p.slow, p.APIs = nil, false, nil
	o := p.Object
	o.Spec.Replicas, o.Spec.Version = ptr.To[int32](3), "v1.35.4"
	o.Spec.MachineTemplate.Spec.InfrastructureRef = clusterv1.ContractVersionedObjectReference{APIGroup: "infrastructure.x", Kind: "HostTemplate", Name: "t1"}
	o.Spec.Cluster.LoadBalancer.Type = spec.LoadBalancerNodeLocal
	o.Spec.Remediation.ConvergeTimeoutSeconds, o.Spec.Remediation.RebootTimeoutSeconds = ptr.To[int32](0), ptr.To[int32](0)
	o.Status.Initialization.ControlPlaneInitialized = ptr.To(true)
	if err := p.declare(d); err != nil {
		return "", err
	}
	for range p.Replicas() {
		p.make()
	}
	p.settle()
	return p.show(), nil
}

func (p *play) declare(d *datadriven.TestData) error {
	o := &p.Object.Spec
	for _, arg := range d.CmdArgs {
		value := strings.Join(arg.Vals, ",")
		switch arg.Key {
		case "version":
			o.Version = value
		case "replicas":
			o.Replicas = ptr.To(number(d, arg.Key))
		case "max-surge":
			o.Rollout.Strategy.RollingUpdate.MaxSurge = ptr.To(number(d, arg.Key))
		case "strategy":
			o.Rollout.Strategy.Type = controlplanev1.RolloutStrategyType(value)
		case "template":
			o.MachineTemplate.Spec.InfrastructureRef.Name = value
		case "after":
			in, err := time.ParseDuration(cmp.Or(value, "-1m"))
			if err != nil {
				return err
			}
			o.Rollout.After = metav1.NewTime(p.Now.Add(in))
		case "certificates":
			o.Rollout.Before.CertificatesExpiryDays = number(d, arg.Key)
		case "converge-timeout":
			o.Remediation.ConvergeTimeoutSeconds = ptr.To(number(d, arg.Key))
		case "reboot-timeout":
			o.Remediation.RebootTimeoutSeconds = ptr.To(number(d, arg.Key))
		case "min-healthy":
			o.Remediation.MinHealthyPeriodSeconds = ptr.To(number(d, arg.Key))
		case "max-retry":
			o.Remediation.MaxRetry = ptr.To(number(d, arg.Key))
		case "retry-period":
			o.Remediation.RetryPeriodSeconds = ptr.To(number(d, arg.Key))
		case "lb":
			o.Cluster.LoadBalancer.Type = ""
		case "initialized":
			p.Object.Status.Initialization.ControlPlaneInitialized = ptr.To(value == "yes")
		case "topology":
			p.Cluster.Spec.Topology.ClassRef.Name, p.Cluster.Spec.Topology.Version = "class", value
		case "domains":
			p.Cluster.Status.FailureDomains = nil
			for _, name := range arg.Vals {
				p.Cluster.Status.FailureDomains = append(p.Cluster.Status.FailureDomains,
					clusterv1.FailureDomain{Name: name, ControlPlane: ptr.To(true)})
			}
		default:
			return errors.New("unknown " + arg.Key)
		}
	}
	return nil
}

// set says what is so of one Machine.
func (p *play) set(d *datadriven.TestData) error {
	name := d.CmdArgs[0].Key
	i := slices.IndexFunc(p.Machines, func(m clusterv1.Machine) bool { return m.Name == name })
	if i < 0 {
		return errors.New("there is no Machine " + name)
	}
	m, config := &p.Machines[i], p.ConfigOf(&p.Machines[i])
	for _, arg := range d.CmdArgs[1:] {
		value := strings.Join(arg.Vals, ", ")
		switch arg.Key {
		case "ill":
			p.ill[name] = value
		case "waits":
			m.Status.NodeRef.Name = ""
			conditions.Set(m, metav1.Condition{
				Type: clusterv1.MachineInfrastructureReadyCondition, Status: metav1.ConditionFalse, Reason: "NoHost", Message: value,
			})
		case "failed":
			conditions.Set(config, metav1.Condition{
				Type: bootstrapv1.HostConvergedCondition, Status: metav1.ConditionFalse,
				Reason: bootstrapv1.StepFailedReason, Message: value,
			})
		case "lost":
			lost(config, value)
		case "maintained":
			maintained(config, value, p.Now)
		case "did":
			did(config, value, p.Now)
		case "held":
			held(config, value)
		case "changed":
			config.Generation++
		case "well":
			delete(p.ill, name)
			joined(m)
			conditions.Delete(m, clusterv1.MachineInfrastructureReadyCondition)
			maintained(config, "", p.Now)
			held(config, "")
			converged(config, m.Spec.Version)
		case "deleting":
			deleting(m)
		case "marked":
			m.Annotations = map[string]string{clusterv1.DeleteMachineAnnotation: ""}
		case "domain":
			m.Spec.FailureDomain = value
		case "rack":
			m.Status.FailureDomain = value
		case "ends":
			config.Status.Certificates = []bootstrapv1.CertificateStatus{{
				Path: "/x", Type: bootstrapv1.ComponentCertificate, NotAfter: metav1.NewTime(p.Now.AddDate(0, 0, int(number(d, arg.Key)))),
			}}
		default:
			return errors.New("unknown " + arg.Key)
		}
	}
	return nil
}

// host says how far one Machine's host is on its way in or out.
func (p *play) host(d *datadriven.TestData) error {
	name := d.CmdArgs[0].Key
	i := slices.IndexFunc(p.Machines, func(m clusterv1.Machine) bool { return m.Name == name })
	if i < 0 {
		return errors.New("there is no Machine " + name)
	}
	m, config := &p.Machines[i], p.ConfigOf(&p.Machines[i])
	switch d.Cmd {
	case "host":
		config.Status.Host = bootstrapv1.HostStatus{Name: "host-" + name, Address: "10.0.0." + name}
		if d.HasArg("joins") {
			config.Status.KubernetesVersion, m.Status.NodeRef.Name = "", ""
		}
	case "leave":
		deleting(m)
		if d.HasArg("drained") {
			conditions.Set(m, metav1.Condition{
				Type: clusterv1.MachineDeletingCondition, Status: metav1.ConditionTrue,
				Reason: clusterv1.MachineDeletingWaitingForPreTerminateHookReason,
			})
		}
		if d.HasArg("stopped") {
			conditions.Set(config, metav1.Condition{
				Type: bootstrapv1.APIServerStoppedCondition, Status: metav1.ConditionTrue, Reason: bootstrapv1.APIServerStoppedReason,
			})
		}
	case "observe":
		config.Status.MembersDigest = bootstrapv1.MembersDigest(p.Known)
	}
	return nil
}

func (p *play) lose() {
	for i := range p.Machines {
		p.Machines[i].Status = clusterv1.MachineStatus{}
	}
	for i := range p.Configs {
		p.Configs[i].Status = bootstrapv1.KubexmConfigStatus{}
	}
}

// members declares the members as the control plane would.
func (p *play) members() string {
	p.Known = p.Members()
	var may []string
	for _, m := range p.Own() {
		if !m.DeletionTimestamp.IsZero() && p.MayTerminate(&m) {
			may = append(may, m.Name)
		}
	}
	said := "  " + cmp.Or(phases(p.Known), "none") + "\n"
	if len(may) > 0 {
		said += "  may go: " + strings.Join(may, ", ") + "\n"
	}
	return said
}

// check is what a MachineHealthCheck says of one Machine.
func (p *play) check(d *datadriven.TestData) error {
	i := slices.IndexFunc(p.Machines, func(m clusterv1.Machine) bool { return m.Name == d.CmdArgs[0].Key })
	if i < 0 {
		return errors.New("there is no Machine " + d.CmdArgs[0].Key)
	}
	m, healthy := &p.Machines[i], metav1.ConditionTrue
	if d.Cmd == "unhealthy" {
		healthy = metav1.ConditionFalse
		conditions.Set(m, metav1.Condition{Type: clusterv1.MachineOwnerRemediatedCondition, Status: metav1.ConditionFalse, Reason: "WaitingForRemediation"})
	}
	conditions.Set(m, metav1.Condition{
		Type: clusterv1.MachineHealthCheckSucceededCondition, Status: healthy, Reason: "Checked", LastTransitionTime: metav1.NewTime(p.Now),
	})
	if d.HasArg("asked") {
		m.Annotations = map[string]string{clusterv1.RemediateMachineAnnotation: ""}
	}
	return nil
}

// repair does what is to be done about unhealthy Machines, and reports whether that was something.
func (p *play) repair() (string, bool) {
	if last := p.LastRemediation(); last != nil {
		p.Object.Status.LastRemediation = controlplanev1.LastRemediation{
			Machine: last.Machine, Time: last.Timestamp, RetryCount: &last.RetryCount,
		}
	}
	if p.InProgress() == nil {
		delete(p.Object.Annotations, controlplanev1.RemediationInProgressAnnotation)
	}
	asked := ""
	for _, m := range p.Own() {
		if why := p.Maintained(&m); why != nil {
			asked += fmt.Sprintf("leave %s alone, %s: %s\n", m.Name, why.Reason, why)
		}
	}
	maintained := asked
	for _, m := range p.ToConverge() {
		config := p.ConfigOf(&m)
		metav1.SetMetaDataAnnotation(&config.ObjectMeta, bootstrapv1.ConvergeAnnotation, p.Now.Format(time.RFC3339))
		asked += fmt.Sprintf("converge %s again\n", m.Name)
	}
	if asked != maintained {
		return asked, true
	}
	r := p.Remediate()
	if p.answer(r.Ask) {
		r = p.Remediate()
	}
	switch {
	case r.Machine == nil:
		return cmp.Or(maintained, "nothing to repair\n"), false
	case r.Reboot:
		metav1.SetMetaDataAnnotation(&p.ConfigOf(r.Machine).ObjectMeta, bootstrapv1.RebootAnnotation, p.Now.Format(time.RFC3339))
		return fmt.Sprintf("reboot %s\n", r.Machine.Name), true
	case r.Blocked != nil:
		return fmt.Sprintf("keep %s, %s: %s\n", r.Machine.Name, r.Blocked.Reason, r.Blocked), false
	default:
		if err := p.keep(r.Record); err != nil {
			p.t.Fatal(err)
		}
		p.act(snapshot.Decision{Delete: r.Machine})
		return fmt.Sprintf("give up %s, retry %d\n", r.Machine.Name, r.Record.RetryCount), true
	}
}

// keep keeps the record of a Machine that is about to be deleted.
func (p *play) keep(r snapshot.Record) error {
	value, err := r.Annotation()
	p.Object.Annotations = map[string]string{controlplanev1.RemediationInProgressAnnotation: value}
	return err
}

// look is what is seen of the cluster through its API.
func (p *play) look() {
	p.tell()
	p.Workload = &snapshot.Workload{Initialized: true, Components: map[string][]snapshot.Component{}}
	if p.down != "" {
		p.Workload.Err = errors.New(p.down)
		return
	}
	for _, m := range p.Own() {
		if m.Status.NodeRef.IsDefined() {
			p.Workload.Components[m.Name] = []snapshot.Component{{Condition: snapshot.EtcdPodHealthy, Problem: p.ill[m.Name]}}
		}
	}
}

func (p *play) say(d snapshot.Decision) string {
	switch {
	case d.Create:
		return fmt.Sprintf("make %s%s: %s\n", p.nextName(), in(p.NextFailureDomain()), d.Why)
	case d.Delete != nil:
		return fmt.Sprintf("delete %s: %s\n", d.Delete.Name, d.Why)
	case d.Follow != nil:
		return fmt.Sprintf("%s follows: %s\n", d.Follow.Name, d.Why)
	case d.Blocked != nil:
		return fmt.Sprintf("wait: %s\n", d.Blocked)
	}
	return "nothing to do\n"
}

func in(domain string) string {
	if domain == "" {
		return ""
	}
	return " in " + domain
}

func (p *play) nextName() string { return string(rune('a' + p.made)) }

// make is a new Machine that is on its way.
func (p *play) make() {
	m := machine(p.nextName())
	m.CreationTimestamp = metav1.NewTime(born.Add(time.Duration(p.made) * time.Minute))
	if p.made >= p.Replicas() {
		m.CreationTimestamp = metav1.NewTime(p.Now)
	}
	m.Spec.Version, m.Spec.FailureDomain = p.Object.Spec.Version, p.NextFailureDomain()
	m.Spec.InfrastructureRef.Kind, m.Spec.Bootstrap.ConfigRef.Name = "Host", m.Name
	wanted := p.Object.Spec.MachineTemplate.Spec.InfrastructureRef
	p.Templates[m.Name] = snapshot.Template{GroupKind: wanted.GroupKind().String(), Name: wanted.Name}
	p.Configs = append(p.Configs, bootstrapv1.KubexmConfig{ObjectMeta: metav1.ObjectMeta{Name: m.Name}})
	if record := p.ForNew(); record != nil {
		value, err := record.Annotation()
		if err != nil {
			p.t.Fatal(err)
		}
		m.Annotations = map[string]string{controlplanev1.RemediationForAnnotation: value}
	}
	p.Machines = append(p.Machines, m)
	p.made++
}

func (p *play) act(d snapshot.Decision) {
	of := func(m *clusterv1.Machine) *clusterv1.Machine {
		return &p.Machines[slices.IndexFunc(p.Machines, func(other clusterv1.Machine) bool { return other.Name == m.Name })]
	}
	switch {
	case d.Create:
		p.make()
	case d.Delete != nil:
		deleting(of(d.Delete))
	case d.Follow != nil:
		of(d.Follow).Spec.Version = p.Object.Spec.Version
	}
}

// settle has all come about that is on its way, unless something stands in the way.
func (p *play) settle() {
	p.Machines = slices.DeleteFunc(p.Machines, func(m clusterv1.Machine) bool { return !m.DeletionTimestamp.IsZero() })
	for i := range p.Machines {
		m := &p.Machines[i]
		config := p.ConfigOf(m)
		if config == nil || conditions.IsFalse(m, clusterv1.MachineInfrastructureReadyCondition) ||
			conditions.IsFalse(config, bootstrapv1.HostConvergedCondition) ||
			conditions.IsFalse(config, bootstrapv1.DisruptionAllowedCondition) {
			continue
		}
		joined(m)
		converged(config, m.Spec.Version)
	}
}

func converged(config *bootstrapv1.KubexmConfig, version string) {
	conditions.Set(config, metav1.Condition{
		Type: bootstrapv1.HostConvergedCondition, Status: metav1.ConditionTrue, Reason: bootstrapv1.HostConvergedReason,
	})
	config.Status.KubernetesVersion = version
}

// run is at most 40 acts: a play that does not end is one that goes round in circles.
func (p *play) run() string {
	var out strings.Builder
	for range 40 {
		p.look()
		if said, acted := p.repair(); acted {
			out.WriteString(said)
			p.settle()
			out.WriteString(p.show())
			continue
		}
		said, d := p.decide()
		out.WriteString(said + p.say(d))
		if !d.Create && d.Delete == nil && d.Follow == nil {
			return out.String()
		}
		p.act(d)
		p.settle()
		out.WriteString(p.show())
	}
	return out.String() + "and so on\n"
}

// show are the Machines: the version that each is to have, and what else is so of it.
func (p *play) show() string {
	var parts []string
	for _, m := range p.Own() {
		text := m.Name + " " + m.Spec.Version
		if domain := cmp.Or(m.Spec.FailureDomain, m.Status.FailureDomain); domain != "" {
			text += " " + domain
		}
		if made := p.Templates[m.Name].Name; made != "t1" {
			text += " " + made
		}
		switch config := p.ConfigOf(&m); {
		case !m.DeletionTimestamp.IsZero():
			text += " leaving"
		case !m.Status.NodeRef.IsDefined():
			text += " coming"
		case config.Status.KubernetesVersion != m.Spec.Version:
			text += " has " + config.Status.KubernetesVersion
		}
		parts = append(parts, text)
	}
	return "  " + cmp.Or(strings.Join(parts, ", "), "none") + "\n"
}
