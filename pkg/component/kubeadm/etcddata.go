// Copyright 2026 The cluster-api-provider-kubexm Authors.
// SPDX-License-Identifier: Apache-2.0

package kubeadm

import (
	_ "embed"
	"strings"

	"github.com/mensylisir/cluster-api-provider-kubexm/pkg/component"
	"github.com/mensylisir/cluster-api-provider-kubexm/pkg/spec"
	"github.com/mensylisir/cluster-api-provider-kubexm/pkg/step"
	"github.com/mensylisir/cluster-api-provider-kubexm/pkg/step/kubelet"
)

const (
	// etcdBegun is a link to the write-ahead log of kubeadm's etcd, which its pod mounts and is not started without.
	etcdBegun = dir + "/kubexm-etcd-begun"
	// etcdPatch has kubeadm mount it. etcdTokenPatch gives the cluster a token of its own, on the host that begins it.
	etcdPatch      = patches + "/etcd0+strategic.yaml"
	etcdTokenPatch = patches + "/etcd1+json.yaml"
)

//go:embed etcd-data.sh
var etcdData string

// EtcdData makes the place of the data of kubeadm's etcd on this host, once, and has kubeadm make a pod that does not start where
// that is gone: so etcd neither begins a second cluster nor takes part in its own without what it has promised. Where the data is
// gone the step fails, and says what to do. It comes before Init and JoinControlPlane.
// first is whether the host begins the cluster: where there is no data, and etcd listens on one of the others, it does not.
// restoring are paths of which one exists while a restore is under way: then nothing is done.
func EtcdData(c Cluster, n kubelet.Node, first bool, others []spec.Member, restoring ...string) step.Step {
	token, asked := "", []string(nil)
	if first {
		token = c.Name
		for _, m := range others {
			asked = append(asked, m.Name+"="+m.Address)
		}
	}
	return step.New(step.Meta{Name: "kubeadm/etcd-data", Description: "have etcd start only with its data"},
		component.NoRestore(restoring...),
		step.Directory{Path: patches, Mode: 0o755},
		step.File{Path: etcdPatch, Mode: 0o644, Content: step.Literal(documents(object{
			"apiVersion": "v1", "kind": "Pod", "metadata": object{"name": "etcd", "namespace": "kube-system"},
			"spec": object{
				"containers": []object{{
					"name": "etcd", "volumeMounts": []object{{"name": "begun", "mountPath": etcdBegun, "readOnly": true}},
				}},
				"volumes": []object{{"name": "begun", "hostPath": object{"path": etcdBegun, "type": "Directory"}}},
			},
		}))},
		step.Command{
			Title: "make the directory of etcd's write-ahead log",
			Argv: []string{
				"/usr/bin/env", "name=" + n.Name, "data=" + c.Spec.Etcd.DataDir, "begun=" + etcdBegun, "token=" + token, "patch=" + etcdTokenPatch,
				"others=" + strings.Join(asked, " "),
				"/bin/sh", "-uc", etcdData, "kubeadm",
			},
			Done: step.Done{Check: []string{
				"/bin/sh", "-c", `[ -d "$1" ] || { echo "there is no write-ahead log of etcd at $1"; exit 1; }`, "sh", etcdBegun,
			}},
		})
}
