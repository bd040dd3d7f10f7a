// Copyright 2026 The cluster-api-provider-kubexm Authors.
// SPDX-License-Identifier: Apache-2.0

package operations

import (
	"cmp"
	"fmt"
	"slices"
	"time"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/utils/ptr"
	"sigs.k8s.io/cluster-api/util/conditions"

	bootstrapv1 "github.com/mensylisir/cluster-api-provider-kubexm/bootstrap/api/v1beta1"
	"github.com/mensylisir/cluster-api-provider-kubexm/internal/hosthealth"
	"github.com/mensylisir/cluster-api-provider-kubexm/pkg/spec"
)

// verb is what hosts can be asked for.
type verb struct {
	kind bootstrapv1.KubexmOperationType
	// annotation asks for it on a KubexmConfig; "" where hosts are not asked.
	annotation string
	// disrupts is whether what runs on the host may suffer: after a failure, no further host begins.
	disrupts bool
	// timeout is how long a host has, and atOnce how many hosts begin, where nothing is said.
	timeout time.Duration
	atOnce  int32
	// on is which hosts of the target it is for, by what their cluster is to be and what is asked for; nil for all.
	on func(*bootstrapv1.KubexmClusterConfigSpec, *bootstrapv1.KubexmConfig, *bootstrapv1.KubexmOperationSpec) bool
	// result is how far a host is that was asked at a time. It is Running until it has ended. Nil where hosts are not asked.
	result func(c *bootstrapv1.KubexmConfig, asked metav1.Time) (bootstrapv1.OperationPhase, string)
}

// verbs are all of them.
var verbs = []verb{
	{bootstrapv1.CheckDriftType, bootstrapv1.CheckDriftAnnotation, false, 10 * time.Minute, 10, nil, done(bootstrapv1.CheckDriftOperation)},
	{bootstrapv1.CollectLogsType, bootstrapv1.CollectLogsAnnotation, false,
		10 * time.Minute, 10, nil, done(bootstrapv1.CollectLogsOperation)},
	{bootstrapv1.BackupEtcdType, bootstrapv1.BackupEtcdAnnotation, false,
		30 * time.Minute, 1, hasMember, done(bootstrapv1.BackupEtcdOperation)},
	{bootstrapv1.RepairType, bootstrapv1.ConvergeAnnotation, true, 30 * time.Minute, 1, nil, repaired},
	{bootstrapv1.RebootType, bootstrapv1.RebootAnnotation, true, 15 * time.Minute, 1, nil, rebooted},
	{bootstrapv1.RestartType, bootstrapv1.RestartAnnotation, true, 30 * time.Minute, 1, hasComponent, done(bootstrapv1.RestartOperation)},
	{bootstrapv1.RenewCertificatesType, bootstrapv1.RenewCertificatesAnnotation, true,
		30 * time.Minute, 1, hasCertificate, done(bootstrapv1.RenewCertificatesOperation)},
	// It is one plan over all of its hosts, and nobody asks them for it: see restore.go.
	{bootstrapv1.RestoreEtcdType, "", true, 30 * time.Minute, 0, isRestored, nil},
}

// isRestored reports whether the host has a part in a restore of etcd: it has a member, or an API server.
func isRestored(cluster *bootstrapv1.KubexmClusterConfigSpec, c *bootstrapv1.KubexmConfig, _ *bootstrapv1.KubexmOperationSpec) bool {
	m := cluster.MemberOf(c)
	return m != nil && m.Stays() && (m.Role == spec.RoleControlPlane || cluster.Cluster.RunsEtcd(m.Role))
}

// hasMember reports whether the host is to have a member of etcd. It goes by specifications: a status may be lost.
func hasMember(cluster *bootstrapv1.KubexmClusterConfigSpec, c *bootstrapv1.KubexmConfig, _ *bootstrapv1.KubexmOperationSpec) bool {
	m := cluster.MemberOf(c)
	return m != nil && m.Stays() && cluster.Cluster.RunsEtcd(m.Role)
}

// hasComponent reports whether a host with its role may have one of the components. What its cluster has instead is for the host to say.
func hasComponent(cluster *bootstrapv1.KubexmClusterConfigSpec, c *bootstrapv1.KubexmConfig, o *bootstrapv1.KubexmOperationSpec) bool {
	role := roleIn(cluster, c)
	return slices.ContainsFunc(o.Components, func(name spec.ComponentName) bool {
		return cluster.Cluster.MayHave(name, role) && (name != spec.ComponentEtcd || hasMember(cluster, c, o))
	})
}

// hasCertificate reports whether a host with its role may have one of the certificates, or any where none is named.
func hasCertificate(cluster *bootstrapv1.KubexmClusterConfigSpec, c *bootstrapv1.KubexmConfig, o *bootstrapv1.KubexmOperationSpec) bool {
	role, names := roleIn(cluster, c), o.Certificates
	if len(names) == 0 {
		names = spec.CertificateNames
	}
	return slices.ContainsFunc(names, func(name spec.CertificateName) bool { return cluster.Cluster.MayHaveCertificate(name, role) })
}

// roleIn is a host's role in its cluster. Who is no member is a worker.
func roleIn(cluster *bootstrapv1.KubexmClusterConfigSpec, c *bootstrapv1.KubexmConfig) spec.Role {
	if m := cluster.MemberOf(c); m != nil {
		return m.Role
	}
	return spec.RoleWorker
}

func verbOf(kind bootstrapv1.KubexmOperationType) (verb, error) {
	for _, v := range verbs {
		if v.kind == kind {
			return v, nil
		}
	}
	return verb{}, fmt.Errorf("spec.type: there is no %q", kind)
}

// done is what ends when the host says that it has.
func done(kind bootstrapv1.OperationType) func(*bootstrapv1.KubexmConfig, metav1.Time) (bootstrapv1.OperationPhase, string) {
	return func(c *bootstrapv1.KubexmConfig, asked metav1.Time) (bootstrapv1.OperationPhase, string) {
		last := hosthealth.Answer(c, kind, asked.Time)
		switch {
		case last == nil:
			return bootstrapv1.OperationRunning, waitsFor(c)
		case last.Outcome == bootstrapv1.RunFailed:
			return bootstrapv1.OperationFailed, last.Message
		}
		return bootstrapv1.OperationSucceeded, last.Message
	}
}

// repaired is what ends with a run that succeeds: after one that failed, another one follows by itself.
func repaired(c *bootstrapv1.KubexmConfig, asked metav1.Time) (bootstrapv1.OperationPhase, string) {
	last := hosthealth.Answer(c, bootstrapv1.ConvergeOperation, asked.Time)
	if last == nil || last.Outcome != bootstrapv1.RunSucceeded {
		return bootstrapv1.OperationRunning, waitsFor(c)
	}
	return bootstrapv1.OperationSucceeded, fmt.Sprintf("%d steps changed", ptr.Deref(last.Changed, 0))
}

// rebooted is what ends when the host has booted, was brought to what it must be, and is ready.
func rebooted(c *bootstrapv1.KubexmConfig, asked metav1.Time) (bootstrapv1.OperationPhase, string) {
	last, run := hosthealth.Answer(c, bootstrapv1.RebootOperation, asked.Time), c.Status.Operation(bootstrapv1.ConvergeOperation)
	switch {
	case last == nil:
		return bootstrapv1.OperationRunning, waitsFor(c)
	case last.Outcome == bootstrapv1.RunFailed:
		return bootstrapv1.OperationFailed, last.Message
	case run.EndTime.Before(&last.EndTime) || !conditions.IsTrue(c, bootstrapv1.HostReadyCondition):
		return bootstrapv1.OperationRunning, "the host has booted, and is to be ready again; " + waitsFor(c)
	}
	return bootstrapv1.OperationSucceeded, last.Message
}

// waitsFor is what a host says that keeps it from what it was asked for.
func waitsFor(c *bootstrapv1.KubexmConfig) string {
	for _, kind := range []string{bootstrapv1.DisruptionAllowedCondition,
		bootstrapv1.HostReachableCondition, bootstrapv1.HostReadyCondition} {
		if said := conditions.Get(c, kind); said != nil && said.Status != metav1.ConditionTrue {
			return fmt.Sprintf("its %s says: %s", kind, cmp.Or(said.Message, said.Reason))
		}
	}
	return "it was asked for"
}
