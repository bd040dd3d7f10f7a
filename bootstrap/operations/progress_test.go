// Copyright 2026 The cluster-api-provider-kubexm Authors.
// SPDX-License-Identifier: Apache-2.0

package operations

import (
	"strings"
	"testing"
	"time"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/utils/ptr"
	clusterv1 "sigs.k8s.io/cluster-api/api/core/v1beta2"
	"sigs.k8s.io/cluster-api/util/conditions"

	bootstrapv1 "github.com/mensylisir/cluster-api-provider-kubexm/bootstrap/api/v1beta1"
	"github.com/mensylisir/cluster-api-provider-kubexm/pkg/spec"
)

var now = time.Date(2026, 11, 23, 12, 0, 0, 0, time.UTC)

// play is an operation with three hosts, whose KubexmConfigs a test changes.
type play struct {
	*testing.T
	progress
	hosts []bootstrapv1.HostOperationStatus
}

func newPlay(t *testing.T, kind bootstrapv1.KubexmOperationType, most int32) *play {
	t.Helper()
	v, err := verbOf(kind)
	if err != nil {
		t.Fatal(err)
	}
	p := &play{T: t, progress: progress{verb: v, name: "op", started: now, now: now, spec: &bootstrapv1.KubexmOperationSpec{}}}
	if most > 0 {
		p.spec.MaxConcurrent = ptr.To(most)
	}
	p.configs = map[string]*bootstrapv1.KubexmConfig{}
	for _, name := range []string{"a", "b", "c"} {
		p.configs[name] = &bootstrapv1.KubexmConfig{ObjectMeta: metav1.ObjectMeta{Name: name}}
		p.hosts = append(p.hosts, bootstrapv1.HostOperationStatus{ConfigName: name, Name: name, Phase: bootstrapv1.OperationPending})
	}
	return p
}

// goes lets time pass, and wants these hosts to be asked and all to be so. Who is asked has it written.
func (p *play) goes(after time.Duration, asks, phases string) {
	p.Helper()
	p.now = p.now.Add(after)
	var asked []string
	for _, h := range p.advance(p.hosts) {
		asked = append(asked, h.Name)
		metav1.SetMetaDataAnnotation(&p.configs[h.ConfigName].ObjectMeta, p.annotation, p.request(p.now))
		h.Phase, h.RequestTime = bootstrapv1.OperationRunning, metav1.NewTime(p.now)
	}
	if got := strings.Join(asked, " "); got != asks {
		p.Errorf("asked are %q, want %q", got, asks)
	}
	var all []string
	for _, h := range p.hosts {
		all = append(all, string(h.Phase))
	}
	if got := strings.Join(all, " "); got != phases {
		p.Errorf("they are %s, want %s: %+v", got, phases, p.hosts)
	}
}

// ends has a host end what it was asked for.
func (p *play) ends(name string, kind bootstrapv1.OperationType, outcome bootstrapv1.RunOutcome) {
	o := p.configs[name].Status.OperationFor(kind)
	o.RequestTime, o.EndTime, o.Outcome = metav1.NewTime(p.configs[name].Asked(p.annotation)), metav1.NewTime(p.now), outcome
	if outcome == bootstrapv1.RunFailed {
		o.Message = "no"
	}
}

func (p *play) ready(name string, status metav1.ConditionStatus) {
	conditions.Set(p.configs[name], metav1.Condition{Type: bootstrapv1.HostReadyCondition, Status: status, Reason: "R", Message: "the Node is not ready"})
}

func TestOneAfterTheOther(t *testing.T) {
	p := newPlay(t, bootstrapv1.RebootType, 0)
	p.goes(0, "a", "Running Pending Pending")
	p.goes(time.Minute, "", "Running Pending Pending")
	p.ends("a", bootstrapv1.RebootOperation, bootstrapv1.RunSucceeded)
	p.ready("a", metav1.ConditionFalse)
	p.goes(time.Minute, "", "Running Pending Pending") // it has booted, and is not ready yet
	if !strings.Contains(p.hosts[0].Message, "the Node is not ready") {
		t.Errorf("it says %q", p.hosts[0].Message)
	}
	p.ready("a", metav1.ConditionTrue)
	p.configs["a"].Status.OperationFor(bootstrapv1.ConvergeOperation).EndTime = metav1.NewTime(p.now)
	p.goes(time.Second, "b", "Succeeded Running Pending")
	p.ends("b", bootstrapv1.RebootOperation, bootstrapv1.RunFailed)
	p.goes(time.Second, "", "Succeeded Failed Skipped") // what failed there would fail here
	if summary, ended, failures := sum(p.hosts); summary != "3/3" || !ended || strings.Join(failures, ", ") != "b failed, c skipped" {
		t.Errorf("it is %s, %v, %v", summary, ended, failures)
	}
}

func TestSomeAtOnce(t *testing.T) {
	p := newPlay(t, bootstrapv1.CheckDriftType, 2)
	p.goes(0, "a b", "Running Running Pending")
	p.ends("b", bootstrapv1.CheckDriftOperation, bootstrapv1.RunFailed)
	p.goes(time.Second, "c", "Running Failed Running") // it disrupts nobody
	p.ends("c", bootstrapv1.CheckDriftOperation, bootstrapv1.RunSucceeded)
	p.goes(11*time.Minute, "", "Failed Failed Succeeded")
	if !strings.Contains(p.hosts[0].Message, "it has not ended within 10m0s") {
		t.Errorf("it says %q", p.hosts[0].Message)
	}
	p.goes(time.Hour, "", "Failed Failed Succeeded")
}

// TestRepairIsTriedAgain: a run that fails is followed by another, which may succeed.
func TestRepairIsTriedAgain(t *testing.T) {
	p := newPlay(t, bootstrapv1.RepairType, 3)
	p.goes(0, "a b c", "Running Running Running")
	p.ends("a", bootstrapv1.ConvergeOperation, bootstrapv1.RunFailed)
	p.ends("b", bootstrapv1.ConvergeOperation, bootstrapv1.RunInterrupted)
	p.goes(time.Minute, "", "Running Running Running")
	p.ends("a", bootstrapv1.ConvergeOperation, bootstrapv1.RunSucceeded)
	p.configs["b"].Status.OperationFor(bootstrapv1.ConvergeOperation).EndTime = metav1.Time{}
	delete(p.configs, "c")
	p.goes(time.Minute, "", "Succeeded Running Failed")
}

// TestStatusIsLost: who was asked is not asked again, by anyone who goes on; an earlier operation of this name is another one.
func TestStatusIsLost(t *testing.T) {
	p := newPlay(t, bootstrapv1.RebootType, 1)
	p.goes(0, "a", "Running Pending Pending")
	asked := p.hosts[0].RequestTime
	p.hosts[0] = bootstrapv1.HostOperationStatus{ConfigName: "a", Name: "a", Phase: bootstrapv1.OperationPending}
	p.goes(time.Minute, "", "Running Pending Pending")
	if !p.hosts[0].RequestTime.Equal(&asked) {
		t.Errorf("it was asked at %s, not %s", p.hosts[0].RequestTime, asked)
	}
	again := newPlay(t, bootstrapv1.RebootType, 1)
	again.configs["a"], again.started, again.now = p.configs["a"], now.Add(time.Minute), now.Add(time.Minute)
	again.goes(0, "", "Pending Pending Pending")
	if !strings.Contains(again.hosts[0].Message, "it waits for what was asked for at 2026-11-23T12:00:00Z") {
		t.Errorf("it says %q", again.hosts[0].Message)
	}
	again.goes(15*time.Minute, "a", "Running Pending Pending") // nobody waits for it any more
}

func TestPick(t *testing.T) {
	of := func(name string, change func(*bootstrapv1.KubexmConfig)) bootstrapv1.KubexmConfig {
		c := bootstrapv1.KubexmConfig{ObjectMeta: metav1.ObjectMeta{Name: name, Labels: map[string]string{clusterv1.ClusterNameLabel: "prod"}}}
		c.Status.Host.Name = "host-" + name
		change(&c)
		return c
	}
	same := func(*bootstrapv1.KubexmConfig) {}
	machine := func(name string, labels map[string]string) *clusterv1.Machine {
		m := &clusterv1.Machine{ObjectMeta: metav1.ObjectMeta{Name: "m-" + name, Labels: labels}}
		m.OwnerReferences = []metav1.OwnerReference{{Kind: "KubexmControlPlane", Name: "prod-cp", Controller: ptr.To(true)}}
		return m
	}
	leaving := machine("w2", map[string]string{clusterv1.MachineDeploymentNameLabel: "workers"})
	leaving.DeletionTimestamp = &metav1.Time{Time: now}
	machines := map[string]*clusterv1.Machine{
		"cp": machine("cp", map[string]string{clusterv1.MachineControlPlaneLabel: ""}),
		"w1": machine("w1", map[string]string{clusterv1.MachineDeploymentNameLabel: "workers"}),
		"w2": leaving,
	}
	for name, tc := range map[string]struct {
		kind bootstrapv1.OperationTargetKind
		name string
		// cluster is the Cluster that is named, "" if none is.
		cluster string
		want    string
	}{
		"a host":                 {bootstrapv1.HostTarget, "host-w1", "", "w1"},
		"one that leaves":        {bootstrapv1.HostTarget, "host-w2", "", ""},
		"one of two Clusters":    {bootstrapv1.HostTarget, "host-lb", "", "lb test-lb"},
		"of this Cluster":        {bootstrapv1.HostTarget, "host-lb", "prod", "lb"},
		"of the other":           {bootstrapv1.HostTarget, "host-lb", "test", "test-lb"},
		"of one that has it not": {bootstrapv1.HostTarget, "host-w1", "test", ""},
		"a Machine":              {bootstrapv1.MachineTarget, "m-cp", "", "cp"},
		"a MachineDeployment":    {bootstrapv1.MachineDeploymentTarget, "workers", "", "w1"},
		"a control plane":        {bootstrapv1.ControlPlaneTarget, "prod-cp", "", "cp"},
		"another one":            {bootstrapv1.ControlPlaneTarget, "other", "", ""},
		"a Cluster":              {bootstrapv1.ClusterTarget, "prod", "prod", "cp lb w1"},
		"a Cluster that has 0":   {bootstrapv1.ClusterTarget, "dev", "", ""},
	} {
		t.Run(name, func(t *testing.T) {
			unlabelled := func(c *bootstrapv1.KubexmConfig) { c.Labels = nil }
			others := func(c *bootstrapv1.KubexmConfig) {
				c.Labels[clusterv1.ClusterNameLabel], c.Status.Host.Name = "test", "host-lb"
			}
			all := []bootstrapv1.KubexmConfig{
				of("w2", same), of("w1", same), of("lb", same), of("cp", same), of("x", unlabelled), of("test-lb", others),
			}
			var got []string
			for _, c := range pick(bootstrapv1.OperationTarget{Kind: tc.kind, Name: tc.name}, tc.cluster, all, machines) {
				got = append(got, c.Name)
			}
			if strings.Join(got, " ") != tc.want {
				t.Errorf("picked %v, want %s", got, tc.want)
			}
		})
	}
}

// TestBackupTarget: a backup is for hosts that are to have a member of etcd, whatever their statuses say or have lost.
func TestBackupTarget(t *testing.T) {
	member := func(name string, role spec.Role, phase bootstrapv1.MemberPhase) bootstrapv1.ClusterMember {
		return bootstrapv1.ClusterMember{Name: name, Role: role, Phase: phase, ConfigName: name}
	}
	members := []bootstrapv1.ClusterMember{
		member("cp", spec.RoleControlPlane, bootstrapv1.MemberServing), member("leaving", spec.RoleControlPlane, bootstrapv1.MemberDraining),
		member("etcd", spec.RoleEtcd, bootstrapv1.MemberServing), member("lb", spec.RoleLoadBalancer, bootstrapv1.MemberServing),
	}
	external := spec.Etcd{Type: spec.EtcdExternal}
	own := spec.Etcd{Hosts: spec.Hosts{Names: []string{"etcd"}}}
	for name, tc := range map[string]struct {
		etcd spec.Etcd
		want string
	}{
		"stacked": {spec.Etcd{}, "cp etcd"}, "on hosts of its own": {own, "etcd"}, "external": {external, ""},
	} {
		t.Run(name, func(t *testing.T) {
			cluster := &bootstrapv1.KubexmClusterConfigSpec{Members: members, Cluster: spec.Cluster{Etcd: tc.etcd}}
			var got []string
			for _, name := range []string{"cp", "etcd", "lb", "leaving", "worker"} {
				c := &bootstrapv1.KubexmConfig{ObjectMeta: metav1.ObjectMeta{Name: name}}
				if name == "worker" {
					c.Status.Etcd.ObservedTime = metav1.NowMicro() // from when it was another's
				}
				if hasMember(cluster, c, nil) {
					got = append(got, name)
				}
			}
			if got := strings.Join(got, " "); got != tc.want {
				t.Errorf("backups are saved on %q, want %q", got, tc.want)
			}
		})
	}
}

// TestRestartTarget: a restart is for hosts whose role has one of the components.
func TestRestartTarget(t *testing.T) {
	cluster := &bootstrapv1.KubexmClusterConfigSpec{
		Cluster: spec.Cluster{Etcd: spec.Etcd{Hosts: spec.Hosts{Names: []string{"etcd"}}}},
		Members: []bootstrapv1.ClusterMember{
			{Name: "cp", ConfigName: "cp", Role: spec.RoleControlPlane, Phase: bootstrapv1.MemberServing},
			{Name: "etcd", ConfigName: "etcd", Role: spec.RoleEtcd, Phase: bootstrapv1.MemberServing},
			{Name: "lb", ConfigName: "lb", Role: spec.RoleLoadBalancer, Phase: bootstrapv1.MemberServing},
		},
	}
	for components, want := range map[string]string{
		"Kubelet": "cp worker", "ContainerRuntime": "cp worker", "Proxy": "cp worker", "Etcd": "etcd", "APIServer": "cp", "ControllerManager": "cp",
		"Scheduler": "cp", "LoadBalancer": "lb", "Scheduler,LoadBalancer": "cp lb", "Kubelet,Etcd": "cp etcd worker",
	} {
		names, err := spec.ParseComponents(components)
		if err != nil {
			t.Fatal(err)
		}
		var got []string
		for _, name := range []string{"cp", "etcd", "lb", "worker"} {
			c := &bootstrapv1.KubexmConfig{ObjectMeta: metav1.ObjectMeta{Name: name}}
			if hasComponent(cluster, c, &bootstrapv1.KubexmOperationSpec{Components: names}) {
				got = append(got, name)
			}
		}
		if got := strings.Join(got, " "); got != want {
			t.Errorf("%s is restarted on %q, want %q", components, got, want)
		}
	}
}

// TestRestartRequest: a host learns what is to be restarted, and by whom; it begins with no further host after one has failed.
func TestRestartRequest(t *testing.T) {
	p := newPlay(t, bootstrapv1.RestartType, 0)
	p.spec.Components = []spec.ComponentName{spec.ComponentKubelet, spec.ComponentEtcd}
	p.goes(0, "a", "Running Pending Pending")
	c := p.configs["a"]
	if got, want := c.Annotations[bootstrapv1.RestartAnnotation], "2026-11-23T12:00:00Z Kubelet,Etcd KubexmOperation/op"; got != want {
		t.Errorf("it is asked for %q, want %q", got, want)
	}
	if components, err := c.AskedRestart(); err != nil || spec.JoinComponents(components) != "Kubelet,Etcd" {
		t.Errorf("it reads %v, %v", components, err)
	}
	p.hosts[0] = bootstrapv1.HostOperationStatus{ConfigName: "a", Name: "a", Phase: bootstrapv1.OperationPending}
	p.goes(time.Minute, "", "Running Pending Pending") // its status was lost, and it is not asked again
	p.ends("a", bootstrapv1.RestartOperation, bootstrapv1.RunFailed)
	p.goes(time.Second, "", "Failed Skipped Skipped")
}

// TestRenewalTarget: a renewal is for hosts whose role has one of the certificates; load balancers have none.
func TestRenewalTarget(t *testing.T) {
	members := []bootstrapv1.ClusterMember{
		{Name: "cp", ConfigName: "cp", Role: spec.RoleControlPlane, Phase: bootstrapv1.MemberServing},
		{Name: "etcd", ConfigName: "etcd", Role: spec.RoleEtcd, Phase: bootstrapv1.MemberServing},
		{Name: "lb", ConfigName: "lb", Role: spec.RoleLoadBalancer, Phase: bootstrapv1.MemberServing},
	}
	own, external := spec.Etcd{Hosts: spec.Hosts{Names: []string{"etcd"}}}, spec.Etcd{Type: spec.EtcdExternal}
	for _, tc := range []struct {
		etcd        spec.Etcd
		names, want string
	}{
		{own, "all", "cp etcd worker"}, {own, "kubelet", "cp worker"}, {own, "kube-proxy,kubelet-client", "cp worker"},
		{own, "etcd-member", "etcd"}, {own, "apiserver-etcd-client,etcd-admin", "cp etcd"}, {own, "apiserver", "cp"}, {own, "kube-vip", "cp"},
		{spec.Etcd{}, "etcd-member", "cp etcd"}, {external, "all", "cp worker"}, {external, "etcd-admin", ""},
	} {
		names, err := spec.ParseCertificates(tc.names)
		if err != nil {
			t.Fatal(err)
		}
		cluster := &bootstrapv1.KubexmClusterConfigSpec{Cluster: spec.Cluster{Etcd: tc.etcd}, Members: members}
		var got []string
		for _, name := range []string{"cp", "etcd", "lb", "worker"} {
			c := &bootstrapv1.KubexmConfig{ObjectMeta: metav1.ObjectMeta{Name: name}}
			if hasCertificate(cluster, c, &bootstrapv1.KubexmOperationSpec{Certificates: names}) {
				got = append(got, name)
			}
		}
		if got := strings.Join(got, " "); got != tc.want {
			t.Errorf("%s is renewed on %q, want %q", tc.names, got, tc.want)
		}
	}
}

// TestRenewalRequest: a host learns what is to be renewed, and by whom; hosts renew one after the other, and none after one that fails.
func TestRenewalRequest(t *testing.T) {
	for want, certificates := range map[string][]spec.CertificateName{"all": nil, "apiserver,kubelet": {"apiserver", "kubelet"}} {
		p := newPlay(t, bootstrapv1.RenewCertificatesType, 0)
		p.spec.Certificates = certificates
		p.goes(0, "a", "Running Pending Pending")
		c := p.configs["a"]
		if got, want := c.Annotations[bootstrapv1.RenewCertificatesAnnotation], "2026-11-23T12:00:00Z "+want+" KubexmOperation/op"; got != want {
			t.Errorf("it is asked for %q, want %q", got, want)
		}
		if names, err := c.AskedCertificates(); err != nil || spec.JoinCertificates(names) != want {
			t.Errorf("it reads %v, %v", names, err)
		}
		p.hosts[0] = bootstrapv1.HostOperationStatus{ConfigName: "a", Name: "a", Phase: bootstrapv1.OperationPending}
		p.goes(time.Minute, "", "Running Pending Pending") // its status was lost, and it is not asked again
		p.ends("a", bootstrapv1.RenewCertificatesOperation, bootstrapv1.RunSucceeded)
		p.goes(time.Second, "b", "Succeeded Running Pending")
		p.ends("b", bootstrapv1.RenewCertificatesOperation, bootstrapv1.RunFailed)
		p.goes(time.Second, "", "Succeeded Failed Skipped")
	}
}

// TestClosedHosts: one whose access is closed is not asked, one that was closed since has failed, and others are not kept from anything.
func TestClosedHosts(t *testing.T) {
	p := newPlay(t, bootstrapv1.RepairType, 1)
	closed := func(name string) {
		conditions.Set(p.configs[name], metav1.Condition{
			Type: bootstrapv1.HostReachableCondition, Status: metav1.ConditionFalse, Reason: bootstrapv1.AccessClosedReason, Message: "delete its Machine",
		})
	}
	closed("a")
	p.goes(0, "b", "Skipped Running Pending")
	closed("b")
	p.goes(time.Second, "", "Skipped Failed Skipped") // as after any failure of what disrupts
	for _, h := range p.hosts[:2] {
		if h.Message != "delete its Machine" || h.EndTime.IsZero() {
			t.Errorf("%s says %q", h.Name, h.Message)
		}
	}
	q := newPlay(t, bootstrapv1.CollectLogsType, 2)
	p = q
	closed("b")
	q.goes(0, "a c", "Running Skipped Running")
}
