// Copyright 2026 The cluster-api-provider-kubexm Authors.
// SPDX-License-Identifier: Apache-2.0

package fleet

import (
	"context"
	"fmt"
	"net/url"
	"os"
	"path/filepath"
	"slices"
	"strconv"
	"time"

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/util/wait"
	clientgoscheme "k8s.io/client-go/kubernetes/scheme"
	"k8s.io/client-go/rest"
	"k8s.io/client-go/tools/clientcmd"
	"k8s.io/utils/ptr"
	clusterv1 "sigs.k8s.io/cluster-api/api/core/v1beta2"
	"sigs.k8s.io/cluster-api/util/conditions"
	"sigs.k8s.io/controller-runtime/pkg/client"

	bootstrapv1 "github.com/mensylisir/cluster-api-provider-kubexm/bootstrap/api/v1beta1"
	controlplanev1 "github.com/mensylisir/cluster-api-provider-kubexm/controlplane/api/v1beta1"
	infrav1 "github.com/mensylisir/cluster-api-provider-kubexm/exp/infrastructure/api/v1alpha1"
	"github.com/mensylisir/cluster-api-provider-kubexm/pkg/spec"
)

const (
	// cluster is the Cluster's name, workers its MachineDeployment's, and pool the label by which Machines find their hosts.
	cluster, workers, pool = "bench", "workers", "pool"
	// patience is how long objects may take to be as they are to be.
	patience = 20 * time.Minute
)

// Fleet is a Cluster with one control plane Machine, and workers.
type Fleet struct {
	api client.Client
	// server is the endpoint, ca where its authority's certificate and key lie.
	server  clusterv1.APIEndpoint
	ca      string
	version string
	// worker is the host of the worker that is declared.
	worker Host
}

// Host is one that Machines may have.
type Host struct {
	// Name is that of the KubexmHost and the Node, Address that by which it is dialled, Internal the one that it says it has.
	Name, Address, Internal string
	// User logs in with Key, if the host shows HostKey.
	User, Key, HostKey string
}

// New is a fleet in the plane of that directory, with no objects yet.
func New(dir, version string) (*Fleet, error) {
	config, err := clientcmd.BuildConfigFromFlags("", filepath.Join(dir, "kubeconfig"))
	if err != nil {
		return nil, err
	}
	config.QPS = -1
	config.WarningHandler = rest.NoWarnings{} // who writes what others have made is told of how they name their finalizers
	scheme := runtime.NewScheme()
	for _, add := range []func(*runtime.Scheme) error{clientgoscheme.AddToScheme, addToScheme} {
		if err := add(scheme); err != nil {
			return nil, err
		}
	}
	at, err := url.Parse(config.Host)
	if err != nil {
		return nil, err
	}
	port, err := strconv.ParseInt(at.Port(), 10, 32)
	if err != nil {
		return nil, fmt.Errorf("API server %s: %w", config.Host, err)
	}
	f := &Fleet{version: version, ca: filepath.Join(dir, "pki", "ca"), server: clusterv1.APIEndpoint{Host: "localhost", Port: int32(port)}}
	f.api, err = client.New(config, client.Options{Scheme: scheme})
	return f, err
}

// Declare creates the objects of a control plane on a host, and of a worker on another.
func (f *Fleet) Declare(ctx context.Context, on, worker Host) error {
	f.worker = worker
	authority := &corev1.Secret{ObjectMeta: named(cluster + "-ca"), Type: clusterv1.ClusterSecretType, Data: map[string][]byte{}}
	authority.Labels = map[string]string{clusterv1.ClusterNameLabel: cluster}
	var err error
	for key, file := range map[string]string{corev1.TLSCertKey: f.ca + ".crt", corev1.TLSPrivateKeyKey: f.ca + ".key"} {
		if authority.Data[key], err = os.ReadFile(file); err != nil {
			return err
		}
	}
	controlPlane := controlplanev1.KubexmControlPlaneSpec{Version: f.version}
	controlPlane.MachineTemplate.Spec.InfrastructureRef = infrastructureRef("control-plane")
	// The kinds of which the API server need not show static pods.
	controlPlane.Cluster.Kubernetes.Type, controlPlane.Cluster.Etcd.Type = spec.KubernetesKubexm, spec.EtcdKubexm
	labels := map[string]string{clusterv1.ClusterNameLabel: cluster, pool: workers}
	return f.create(ctx,
		authority,
		// By which a cluster is known to have begun.
		&corev1.ConfigMap{ObjectMeta: metav1.ObjectMeta{Namespace: metav1.NamespaceSystem, Name: "kube-root-ca.crt"}},
		&corev1.Secret{
			ObjectMeta: named("ssh"), Type: corev1.SecretTypeSSHAuth, StringData: map[string]string{corev1.SSHAuthPrivateKey: on.Key},
		},
		on.object("control-plane"), on.node(), worker.object(workers), worker.node(),
		machineTemplate("control-plane"), machineTemplate(workers),
		&infrav1.KubexmCluster{ObjectMeta: named(cluster), Spec: infrav1.KubexmClusterSpec{ControlPlaneEndpoint: f.server}},
		&controlplanev1.KubexmControlPlane{ObjectMeta: named(cluster), Spec: controlPlane},
		&bootstrapv1.KubexmConfigTemplate{ObjectMeta: named(workers)},
		&clusterv1.Cluster{ObjectMeta: named(cluster), Spec: clusterv1.ClusterSpec{
			InfrastructureRef: clusterv1.ContractVersionedObjectReference{APIGroup: infrav1.GroupVersion.Group, Kind: "KubexmCluster", Name: cluster},
			ControlPlaneRef: clusterv1.ContractVersionedObjectReference{
				APIGroup: controlplanev1.GroupVersion.Group, Kind: "KubexmControlPlane", Name: cluster,
			},
		}},
		&clusterv1.MachineDeployment{ObjectMeta: named(workers), Spec: clusterv1.MachineDeploymentSpec{
			ClusterName: cluster, Replicas: ptr.To[int32](1), Selector: metav1.LabelSelector{MatchLabels: labels},
			Template: clusterv1.MachineTemplateSpec{ObjectMeta: clusterv1.ObjectMeta{Labels: labels}, Spec: clusterv1.MachineSpec{
				ClusterName: cluster, Version: f.version, InfrastructureRef: infrastructureRef(workers),
				Bootstrap: clusterv1.Bootstrap{ConfigRef: clusterv1.ContractVersionedObjectReference{
					APIGroup: bootstrapv1.GroupVersion.Group, Kind: "KubexmConfigTemplate", Name: workers,
				}},
			}},
		}},
	)
}

// Again has all hosts converged again, by annotation.
func (f *Fleet) Again(ctx context.Context) error {
	patch := fmt.Appendf(nil, `{"metadata":{"annotations":{%q:%q}}}`, bootstrapv1.ConvergeAnnotation, time.Now().Format(time.RFC3339Nano))
	list := &bootstrapv1.KubexmConfigList{}
	if err := f.api.List(ctx, list, client.InNamespace(namespace)); err != nil {
		return err
	}
	for i := range list.Items {
		if err := f.api.Patch(ctx, &list.Items[i], client.RawPatch("application/merge-patch+json", patch)); err != nil {
			return err
		}
	}
	return nil
}

// Await returns when there are so many Machines, all of them run and are available, Cluster API counts them, and their hosts are as
// planned by a run.
func (f *Fleet) Await(ctx context.Context, machines int) error {
	missing := ""
	err := wait.PollUntilContextTimeout(ctx, 2*time.Second, patience, true, func(ctx context.Context) (bool, error) {
		var err error
		missing, err = f.missing(ctx, machines)
		return missing == "", err
	})
	if err != nil {
		return fmt.Errorf("%w: %s", err, missing)
	}
	return nil
}

// missing says what is not so yet.
func (f *Fleet) missing(ctx context.Context, machines int) (string, error) {
	all, configs, deployment := &clusterv1.MachineList{}, &bootstrapv1.KubexmConfigList{}, &clusterv1.MachineDeployment{}
	if err := f.api.List(ctx, all, client.InNamespace(namespace)); err != nil {
		return "", err
	}
	if err := f.api.List(ctx, configs, client.InNamespace(namespace)); err != nil {
		return "", err
	}
	if err := f.api.Get(ctx, client.ObjectKey{Namespace: namespace, Name: workers}, deployment); err != nil {
		return "", err
	}
	available, why := 0, ""
	for i := range all.Items {
		if m := &all.Items[i]; conditions.IsTrue(m, clusterv1.MachineAvailableCondition) {
			available++
		} else if c := conditions.Get(m, clusterv1.MachineReadyCondition); why == "" && c != nil {
			why = fmt.Sprintf("; Machine %s: %s", m.Name, c.Message)
		}
	}
	ready := 0
	for i := range configs.Items {
		if c := &configs.Items[i]; conditions.IsTrue(c, bootstrapv1.HostReadyCondition) &&
			c.Status.Operation(bootstrapv1.ConvergeOperation).Outcome == bootstrapv1.RunSucceeded {
			ready++
		} else if why == "" {
			why = fmt.Sprintf("; KubexmConfig %s: %s", c.Name, conditions.GetMessage(c, bootstrapv1.HostReadyCondition))
		}
	}
	counted := ptr.Deref(deployment.Status.AvailableReplicas, 0)
	if all := []int{len(all.Items), available, int(counted) + 1, ready}; slices.Min(all) == machines && slices.Max(all) == machines {
		return "", nil
	}
	return fmt.Sprintf("there are %d Machines and should be %d; %d are available, %d of them by the MachineDeployment; %d hosts are as planned%s",
		len(all.Items), machines, available, counted, ready, why), nil
}

func (f *Fleet) create(ctx context.Context, objects ...client.Object) error {
	for _, o := range objects {
		status := o.DeepCopyObject()
		if err := f.api.Create(ctx, o); err != nil {
			return fmt.Errorf("create the %T %s: %w", o, o.GetName(), err)
		}
		if node, ok := status.(*corev1.Node); ok {
			node.ResourceVersion = o.GetResourceVersion()
			if err := f.api.Status().Update(ctx, node); err != nil {
				return fmt.Errorf("status of the Node %s: %w", node.Name, err)
			}
		}
	}
	return nil
}

func (h Host) object(of string) *infrav1.KubexmHost {
	o := &infrav1.KubexmHost{ObjectMeta: named(h.Name), Spec: infrav1.KubexmHostSpec{
		Address: h.Address, InternalAddresses: []string{h.Internal},
		Access: spec.Access{
			User: h.User, Credentials: spec.Credentials{SecretRef: spec.SecretReference{Name: "ssh"}},
			HostKeys: spec.HostKeys{Pinned: []string{h.HostKey}},
		},
	}}
	o.Labels = map[string]string{pool: of}
	return o
}

// node is as the host's kubelet would have it.
func (h Host) node() *corev1.Node {
	return &corev1.Node{
		ObjectMeta: metav1.ObjectMeta{Name: h.Name}, Spec: corev1.NodeSpec{ProviderID: infrav1.ProviderID(h.object(""))},
		Status: corev1.NodeStatus{Conditions: []corev1.NodeCondition{
			{Type: corev1.NodeMemoryPressure, Status: corev1.ConditionFalse},
			{Type: corev1.NodeDiskPressure, Status: corev1.ConditionFalse},
			{Type: corev1.NodePIDPressure, Status: corev1.ConditionFalse},
			{Type: corev1.NodeReady, Status: corev1.ConditionTrue},
		}},
	}
}

func machineTemplate(of string) *infrav1.KubexmMachineTemplate {
	t := &infrav1.KubexmMachineTemplate{ObjectMeta: named(of)}
	t.Spec.Template.Spec.HostSelector = &metav1.LabelSelector{MatchLabels: map[string]string{pool: of}}
	return t
}

func infrastructureRef(name string) clusterv1.ContractVersionedObjectReference {
	return clusterv1.ContractVersionedObjectReference{APIGroup: infrav1.GroupVersion.Group, Kind: "KubexmMachineTemplate", Name: name}
}

func named(name string) metav1.ObjectMeta { return metav1.ObjectMeta{Namespace: namespace, Name: name} }
