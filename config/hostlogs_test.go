// Copyright 2026 The cluster-api-provider-kubexm Authors.
// SPDX-License-Identifier: Apache-2.0

package config_test

import (
	"path/filepath"
	"slices"
	"testing"

	appsv1 "k8s.io/api/apps/v1"
	corev1 "k8s.io/api/core/v1"

	"github.com/mensylisir/cluster-api-provider-kubexm/bootstrap/hostlogs"
)

// TestHostLogsHaveRoom: logs of hosts that failed are kept as installed, in a directory below a volume that the manager may write to, and
// never as many that the kubelet would evict the Pod for it.
func TestHostLogsHaveRoom(t *testing.T) {
	pod := each[appsv1.Deployment](t, build(t, "bootstrap"), "Deployment")[0].Spec.Template.Spec
	manager := pod.Containers[0]
	at := slices.IndexFunc(manager.Env, func(e corev1.EnvVar) bool { return e.Name == "KUBEXM_HOST_LOGS_DIR" })
	if at < 0 {
		t.Fatal("no logs are kept")
	}
	mount := slices.IndexFunc(manager.VolumeMounts, func(m corev1.VolumeMount) bool {
		return m.MountPath == filepath.Dir(manager.Env[at].Value) && !m.ReadOnly
	})
	if mount < 0 {
		t.Fatalf("%s is below no volume that can be written to: %v", manager.Env[at].Value, manager.VolumeMounts)
	}
	volume := slices.IndexFunc(pod.Volumes, func(v corev1.Volume) bool { return v.Name == manager.VolumeMounts[mount].Name })
	const spare = 64 << 20 // of directories, and of blocks
	if size := pod.Volumes[volume].EmptyDir.SizeLimit; size == nil || size.Value() < hostlogs.MaxBytes+spare {
		t.Errorf("the volume has %v, and %d bytes are kept", size, hostlogs.MaxBytes)
	}
}
