// Copyright 2026 The cluster-api-provider-kubexm Authors.
// SPDX-License-Identifier: Apache-2.0

package webhooks

import (
	"reflect"
	"strings"
	"testing"

	"k8s.io/utils/ptr"

	bootstrapv1 "github.com/mensylisir/cluster-api-provider-kubexm/bootstrap/api/v1beta1"
	"github.com/mensylisir/cluster-api-provider-kubexm/pkg/spec"
)

var aBucket = bootstrapv1.EtcdSnapshotInBucket{
	Location: "s3://backups/prod/etcd-prod-20261123T030000Z-cp1.db", Endpoint: "https://s3.example:9000",
	SecretRef: spec.SecretReference{Name: "object-store"},
}

// restores makes a restore of an operation, and changes it.
func restores(change func(*bootstrapv1.KubexmOperationSpec)) func(*bootstrapv1.KubexmOperationSpec) {
	return func(s *bootstrapv1.KubexmOperationSpec) {
		s.Type, s.Target.Kind = bootstrapv1.RestoreEtcdType, bootstrapv1.ClusterTarget
		s.RestoreEtcd = bootstrapv1.EtcdRestore{
			Snapshot: bootstrapv1.EtcdSnapshotSource{Host: bootstrapv1.EtcdSnapshotOnHost{
				Name: "cp1", Path: "/var/lib/kubexm/etcd-backups/etcd-prod-20261123T030000Z-cp1.db",
			}},
			AcceptedLossSeconds: ptr.To[int32](3600),
		}
		if change != nil {
			change(s)
		}
	}
}

func TestValidateOperation(t *testing.T) {
	ok := bootstrapv1.KubexmOperationSpec{
		Type: bootstrapv1.RebootType, Target: bootstrapv1.OperationTarget{Kind: bootstrapv1.MachineDeploymentTarget, Name: "workers"},
	}
	for name, tc := range map[string]struct {
		change func(*bootstrapv1.KubexmOperationSpec)
		// want are the paths of the errors, in order.
		want string
	}{
		"what is needed": {func(*bootstrapv1.KubexmOperationSpec) {}, ""},
		"all of it": {func(s *bootstrapv1.KubexmOperationSpec) {
			s.MaxConcurrent, s.TimeoutSeconds, s.TTLSecondsAfterFinished = ptr.To[int32](1), ptr.To[int32](1), ptr.To[int32](0)
		}, ""},
		"components of a restart": {func(s *bootstrapv1.KubexmOperationSpec) {
			s.Type, s.Components = bootstrapv1.RestartType, []spec.ComponentName{spec.ComponentKubelet}
		}, ""},
		"a restart of nothing":   {func(s *bootstrapv1.KubexmOperationSpec) { s.Type = bootstrapv1.RestartType }, "components"},
		"components of a reboot": {func(s *bootstrapv1.KubexmOperationSpec) { s.Components = []spec.ComponentName{spec.ComponentKubelet} }, "components"},
		"a renewal of all":       {func(s *bootstrapv1.KubexmOperationSpec) { s.Type = bootstrapv1.RenewCertificatesType }, ""},
		"a renewal of some": {func(s *bootstrapv1.KubexmOperationSpec) {
			s.Type, s.Certificates = bootstrapv1.RenewCertificatesType, []spec.CertificateName{"apiserver", "etcd-member"}
		}, ""},
		"certificates of a restart": {func(s *bootstrapv1.KubexmOperationSpec) {
			s.Type, s.Components = bootstrapv1.RestartType, []spec.ComponentName{spec.ComponentKubelet}
			s.Certificates = []spec.CertificateName{"kubelet"}
		}, "certificates"},
		"components of a renewal": {func(s *bootstrapv1.KubexmOperationSpec) {
			s.Type, s.Components = bootstrapv1.RenewCertificatesType, []spec.ComponentName{spec.ComponentKubelet}
		}, "components"},
		"certificates, and nothing else that is another": {func(s *bootstrapv1.KubexmOperationSpec) {
			s.Certificates = []spec.CertificateName{"kubelet"}
		}, "certificates"},
		"a restore": {restores(nil), ""},
		"a restore from a bucket": {restores(func(s *bootstrapv1.KubexmOperationSpec) {
			s.RestoreEtcd.OfCluster, s.RestoreEtcd.Snapshot = "dev", bootstrapv1.EtcdSnapshotSource{Bucket: aBucket}
		}), ""},
		"a restore of nothing": {restores(func(s *bootstrapv1.KubexmOperationSpec) { s.RestoreEtcd = bootstrapv1.EtcdRestore{} }),
			"restoreEtcd.acceptedLossSeconds restoreEtcd.snapshot"},
		"a restore that may lose nothing": {restores(func(s *bootstrapv1.KubexmOperationSpec) {
			s.RestoreEtcd.AcceptedLossSeconds = ptr.To[int32](0)
		}), "restoreEtcd.acceptedLossSeconds"},
		"a restore from both": {restores(func(s *bootstrapv1.KubexmOperationSpec) { s.RestoreEtcd.Snapshot.Bucket = aBucket }), "restoreEtcd.snapshot.bucket"},
		"a restore from no file": {restores(func(s *bootstrapv1.KubexmOperationSpec) {
			s.RestoreEtcd.Snapshot.Host = bootstrapv1.EtcdSnapshotOnHost{Name: "a b", Path: "/var/../x.db"}
		}), "restoreEtcd.snapshot.host.name restoreEtcd.snapshot.host.path"},
		"a restore from no bucket": {restores(func(s *bootstrapv1.KubexmOperationSpec) {
			s.RestoreEtcd.Snapshot = bootstrapv1.EtcdSnapshotSource{Bucket: bootstrapv1.EtcdSnapshotInBucket{
				Location: "s3://key:word@b/x.db", Endpoint: "http://s3.example",
			}}
		}), "restoreEtcd.snapshot.bucket.location restoreEtcd.snapshot.bucket.endpoint restoreEtcd.snapshot.bucket.secretRef.name"},
		"a restore on some hosts": {restores(func(s *bootstrapv1.KubexmOperationSpec) {
			s.Target.Kind, s.MaxConcurrent = bootstrapv1.ControlPlaneTarget, ptr.To[int32](1)
		}), "target.kind maxConcurrent"},
		"a backup with what is restored": {func(s *bootstrapv1.KubexmOperationSpec) {
			restores(nil)(s)
			s.Type = bootstrapv1.BackupEtcdType
		}, "restoreEtcd"},
		"no name at all": {func(s *bootstrapv1.KubexmOperationSpec) { s.Target.Name = "a b" }, "target.name"},
	} {
		t.Run(name, func(t *testing.T) {
			before, o := &bootstrapv1.KubexmOperation{Spec: ok}, &bootstrapv1.KubexmOperation{Spec: ok}
			tc.change(&o.Spec)
			var got []string
			for _, err := range ValidateOperation(o) {
				got = append(got, strings.TrimPrefix(err.Field, "spec."))
			}
			if strings.Join(got, " ") != tc.want {
				t.Errorf("refused %v, and not %q", got, tc.want)
			}
			changed := !reflect.DeepEqual(before.Spec, o.Spec)
			if errs := ValidateOperationUpdate(before, o); (len(errs) > 0) != changed {
				t.Errorf("changed %v, refused %v", changed, errs)
			}
		})
	}
}
