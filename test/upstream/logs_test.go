// Copyright 2026 The cluster-api-provider-kubexm Authors.
// SPDX-License-Identifier: Apache-2.0

//go:build upstream

package upstream

import (
	"context"
	"os"
	"os/exec"
	"path/filepath"

	clusterv1 "sigs.k8s.io/cluster-api/api/core/v1beta2"
	"sigs.k8s.io/controller-runtime/pkg/client"

	infrav1 "github.com/mensylisir/cluster-api-provider-kubexm/exp/infrastructure/api/v1alpha1"
	"github.com/mensylisir/cluster-api-provider-kubexm/test/hosts"
)

// journals are what a spec keeps of hosts before it deletes its Cluster, whether it has passed or not.
type journals struct{}

// CollectMachineLog writes the journal of the Machine's host.
func (journals) CollectMachineLog(ctx context.Context, api client.Client, machine *clusterv1.Machine, path string) error {
	journal, err := journalOf(ctx, api, machine)
	if err != nil {
		return err
	}
	if err := os.MkdirAll(path, 0o700); err != nil {
		return err
	}
	return os.WriteFile(filepath.Join(path, "journal.log"), []byte(journal), 0o600)
}

func journalOf(ctx context.Context, api client.Client, machine *clusterv1.Machine) (string, error) {
	argv := []string{"journalctl", "--no-pager"}
	if of := machine.Spec.InfrastructureRef; of.Kind != "KubexmMachine" { // a container of the infrastructure machine's name
		out, err := exec.CommandContext(ctx, "docker", append([]string{"exec", of.Name}, argv...)...).CombinedOutput()
		return string(out), err
	}
	infra := &infrav1.KubexmMachine{}
	if err := api.Get(ctx, client.ObjectKey{Namespace: machine.Namespace, Name: machine.Spec.InfrastructureRef.Name}, infra); err != nil {
		return "", err
	}
	host, err := hosts.Find(ctx, infra.Status.HostRef.Name)
	if err != nil {
		return "", err
	}
	return host.Exec(ctx, argv...)
}

// CollectMachinePoolLog has nothing to do: there are no MachinePools.
func (journals) CollectMachinePoolLog(context.Context, client.Client, *clusterv1.MachinePool, string) error {
	return nil
}

// CollectInfrastructureLogs has nothing to do: hosts are all that there is.
func (journals) CollectInfrastructureLogs(context.Context, client.Client, *clusterv1.Cluster, string) error {
	return nil
}
