// Copyright 2026 The cluster-api-provider-kubexm Authors.
// SPDX-License-Identifier: Apache-2.0

package component

import (
	_ "embed"
	"time"

	"github.com/mensylisir/cluster-api-provider-kubexm/pkg/plan"
	"github.com/mensylisir/cluster-api-provider-kubexm/pkg/step"
)

// Etcd is the slot of what keeps the cluster's objects: on the control plane's hosts, on hosts of its own, or where others run it. One
// fills it, for the life of the cluster. Of what a host has no part in, there are no tasks.
type Etcd interface {
	// Needs are what it takes from the bundle for a host.
	Needs(in Inputs) Needs
	// IsPod reports whether members are static pods of the control plane's kubelets. Their Tasks come after the kubelet runs, unless
	// Kubernetes makes the pods itself; those of all others come before anything of Kubernetes.
	IsPod() bool
	// Image is the reference of what such a pod runs, as the host has it.
	Image(in Inputs) string
	// Gates come before anything on a host that uses it: whether it is fit is asked from the controller.
	Gates(in Inputs) []plan.Task
	// Prepare comes before all else on a host: it waits for an etcd that runs elsewhere, or declares what a member will write.
	Prepare(in Inputs) []plan.Task
	// Tasks make the host a member (which makes EtcdMember), and give its API server what Client names.
	Tasks(in Inputs) []plan.Task
	// Care keeps the members and databases in order, when the host has become what it must be.
	Care(in Inputs) []plan.Task
	// Client is how the host's API server reaches it.
	Client(in Inputs) EtcdClient
	// Certificates are those of its steps that make some.
	Certificates(in Inputs) []step.Step
	// Save is the command that saves a snapshot on a control plane host, before programs are replaced there.
	Save(in Inputs) step.Command
	// SaveAsked saves one once for each time at which somebody asks for it, wherever etcd runs.
	SaveAsked(in Inputs, asked time.Time) plan.Task
	// Members are what more can be done with the members, nil where others run them.
	Members() EtcdMembers
}

// EtcdMembers are the members of an etcd that is run here: their data can be backed up and restored.
type EtcdMembers interface {
	// Backup saves one on a member's host, and BackupName is the name of its files, without their endings.
	Backup(in Inputs, b Backup) plan.Task
	BackupName(in Inputs, asked time.Time) string
	// PrepareRestore sends the snapshot to a member's host, and makes the output prepared.
	PrepareRestore(in Inputs, r Restore, prepared string) plan.Task
	// Restore ends a member, restores its data, and starts it once all members' are restored, of which hosts are the names. after says
	// that nobody uses etcd any more. It makes EtcdMember when the member is well.
	Restore(in Inputs, r Restore, after, hosts []string) plan.Task
	// EndRestore removes what the restore has left on a host.
	EndRestore(in Inputs, r Restore, after ...string) plan.Task
	// Restart restarts the host's member, while no other of the cluster is away. Where Kubernetes makes the members, it has no steps.
	Restart(in Inputs, r Restart) []step.Step
}

// EtcdLock is the text of shell functions, answers, spare and hold: whoever makes the members, one of them is away at a time by the same
// lock, and none that is needed for quorum.
//
//go:embed etcd-lock.sh
var EtcdLock string

// EtcdClient is how an API server reaches etcd.
type EtcdClient struct {
	// Endpoints are URLs, such as https://10.0.0.1:2379.
	Endpoints []string
	// CA, Certificate and Key are files on the host, "" where etcd has no TLS.
	CA, Certificate, Key string
}

// KubernetesMakesEtcd reports whether the members are static pods that Kubernetes makes by itself, as kubeadm does.
func (in Inputs) KubernetesMakesEtcd() bool { return in.Etcd.IsPod() && in.Kubernetes.MakesEtcdPods() }
