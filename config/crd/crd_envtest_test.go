// Copyright 2026 The cluster-api-provider-kubexm Authors.
// SPDX-License-Identifier: Apache-2.0

//go:build envtest

package crd_test

import (
	"errors"
	"fmt"
	"os"
	"strings"
	"testing"
	"time"

	. "github.com/onsi/gomega"
	autoscalingv1 "k8s.io/api/autoscaling/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/types"
	clientgoscheme "k8s.io/client-go/kubernetes/scheme"
	"k8s.io/client-go/rest"
	"k8s.io/utils/ptr"
	clusterv1 "sigs.k8s.io/cluster-api/api/core/v1beta2"
	ctrl "sigs.k8s.io/controller-runtime"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/yaml"

	bootstrapv1 "github.com/mensylisir/cluster-api-provider-kubexm/bootstrap/api/v1beta1"
	bootstrapwebhooks "github.com/mensylisir/cluster-api-provider-kubexm/bootstrap/webhooks"
	controlplanev1 "github.com/mensylisir/cluster-api-provider-kubexm/controlplane/api/v1beta1"
	controlplanewebhooks "github.com/mensylisir/cluster-api-provider-kubexm/controlplane/webhooks"
	infrav1 "github.com/mensylisir/cluster-api-provider-kubexm/exp/infrastructure/api/v1beta1"
	infrawebhooks "github.com/mensylisir/cluster-api-provider-kubexm/exp/infrastructure/webhooks"
	"github.com/mensylisir/cluster-api-provider-kubexm/internal/testapi"
)

// api is a client of the one API server of this package's tests, which has all definitions and webhooks.
var api client.Client

func TestMain(m *testing.M) {
	scheme := runtime.NewScheme()
	if err := errors.Join(clientgoscheme.AddToScheme(scheme), clusterv1.AddToScheme(scheme),
		bootstrapv1.AddToScheme(scheme), controlplanev1.AddToScheme(scheme), infrav1.AddToScheme(scheme)); err != nil {
		panic(err)
	}
	os.Exit(testapi.Package{
		Scheme: scheme,
		Setup: func(mgr ctrl.Manager) error {
			return errors.Join(bootstrapwebhooks.SetupWithManager(mgr), controlplanewebhooks.SetupWithManager(mgr), infrawebhooks.SetupWithManager(mgr))
		},
		Use: func(c client.Client, _ *rest.Config) { api = c },
	}.Run(m))
}

// create applies an object that is written as YAML. The webhook server may be on its way still.
func create(t *testing.T, text string, options ...client.CreateOption) error {
	t.Helper()
	object := &unstructured.Unstructured{}
	if err := yaml.Unmarshal([]byte(text), &object.Object); err != nil {
		t.Fatalf("%v in:\n%s", err, text)
	}
	object.SetNamespace(metav1.NamespaceDefault)
	var err error
	NewWithT(t).Eventually(func() bool {
		err = api.Create(t.Context(), object.DeepCopy(), options...)
		return err == nil || !strings.Contains(err.Error(), "connection refused")
	}, 30*time.Second).Should(BeTrue(), "%v", err)
	return err
}

const (
	fingerprint = "SHA256:uNiVztksCsDhcc0u9e8BrWfPrQmMlQWbZ+Yb9Jgkl3c"

	host = `
apiVersion: infrastructure.cluster.x-k8s.io/v1beta1
kind: KubexmHost
metadata: {name: %s}
spec: {address: 172.16.0.17, ssh: {user: ops, credentialsRef: {name: fleet-ssh}, hostKey: "` + fingerprint + `"}}
`
	controlPlane = `
apiVersion: controlplane.cluster.x-k8s.io/v1beta1
kind: KubexmControlPlane
metadata: {name: %s}
spec:
  version: v1.36.3
  machineTemplate: {spec: {infrastructureRef: {apiGroup: infrastructure.cluster.x-k8s.io, kind: KubexmMachineTemplate, name: masters}}}
  %s
`
	config = `
apiVersion: bootstrap.cluster.x-k8s.io/v1beta1
kind: KubexmConfig
metadata: {name: %s}
spec: {%s}
`
	clusterConfig = `
apiVersion: bootstrap.cluster.x-k8s.io/v1beta1
kind: KubexmClusterConfig
metadata: {name: %s}
spec: {version: v1.36.3, %s}
`
	remediationTemplate = `
apiVersion: bootstrap.cluster.x-k8s.io/v1beta1
kind: KubexmRemediationTemplate
metadata: {name: %s}
spec: {template: {spec: {%s}}}
`
	clusterTemplate = `
apiVersion: infrastructure.cluster.x-k8s.io/v1beta1
kind: KubexmClusterTemplate
metadata: {name: x}
spec: {template: {spec: {controlPlaneEndpoint: {host: %s, port: 6443}}}}
`
	template = `
apiVersion: %s.cluster.x-k8s.io/v1beta1
kind: %s
metadata: {name: empty}
spec: {template: {spec: {}}}
`
)

func TestObjectsOfUsers(t *testing.T) {
	for name, test := range map[string]struct {
		object string
		// want is a part of the error, "" if there is to be none.
		want string
	}{
		"a host":               {object: fmt.Sprintf(host, "rack1-07")},
		"a host's long name":   {fmt.Sprintf(host, strings.Repeat("n", 64)), "use at most 63 characters, and not localhost"},
		"a host without a key": {strings.Replace(fmt.Sprintf(host, "x"), fingerprint, "", 1), "spec.ssh.hostKey: Invalid value"},
		"a host's bad key": {
			strings.Replace(fmt.Sprintf(host, "x"), "SHA256:u", "SHA512:u", 1),
			"spec.ssh.hostKey: Invalid value: \"SHA512:uNiVztksCsDhcc0u9e8BrWfPrQmMlQWbZ+Yb9Jgkl3c\"",
		},
		"an empty config":          {object: fmt.Sprintf(config, "empty", "")},
		"a config":                 {object: fmt.Sprintf(config, "full", `kubelet: {maxPods: 50}, nodeLabels: {pool: gpu}, files: [{path: /etc/gpu.conf, contentFrom: {secret: {name: gpu, key: conf}}}]`)},
		"a file with two contents": {fmt.Sprintf(config, "x", `files: [{path: /etc/a, content: a, contentFrom: {secret: {name: a, key: a}}}]`), "set exactly one of content and contentFrom"},
		"a flag that has a field":  {fmt.Sprintf(config, "x", `kubelet: {extraArgs: [{name: max-pods, value: "3"}]}`), "spec.kubelet.extraArgs[0].name: Forbidden"},
		"a cluster's config": {object: fmt.Sprintf(clusterConfig, "full", `apiServerVersion: v1.36.3, controlPlaneEndpoint: {host: 10.1.0.1, port: 6443}, `+
			`cluster: {etcd: {hosts: {names: [e1]}}}, members: [{name: e1, role: etcd, phase: Joining}, {name: cp1, role: control-plane, address: 10.1.0.2, phase: Serving, configName: a}]`)},
		"a cluster's config's bad network":     {fmt.Sprintf(clusterConfig, "x", "cluster: {network: {podCIDRs: [10.0.0.0/16], serviceCIDRs: [10.0.0.0/20]}}"), "spec.cluster.network.serviceCIDRs[0]: Invalid value"},
		"the fingerprint of an encryption key": {object: fmt.Sprintf(clusterConfig, "encrypted", "authorities: [{name: encryption, fingerprint: \"sha256:"+strings.Repeat("0", 64)+"\"}]")},
		"the fingerprint of another thing":     {fmt.Sprintf(clusterConfig, "x", "authorities: [{name: ssh, fingerprint: \"sha256:"+strings.Repeat("0", 64)+"\"}]"), `spec.authorities[0].name: Unsupported value: "ssh"`},
		"encryption by nobody knows what":      {fmt.Sprintf(controlPlane, "x", "cluster: {kubernetes: {encryptionAtRest: {provider: AESGCM}}}"), `spec.cluster.kubernetes.encryptionAtRest.provider: Unsupported value: "AESGCM"`},
		"a worker as a member":                 {fmt.Sprintf(clusterConfig, "x", "members: [{name: w1, role: worker, phase: Serving}]"), "workers are no members"},
		"a member's bad address":               {fmt.Sprintf(clusterConfig, "x", "members: [{name: e1, role: etcd, phase: Serving, address: e1.example}]"), "spec.members[0].address: Invalid value"},
		"a member in no phase":                 {fmt.Sprintf(clusterConfig, "x", "members: [{name: e1, role: etcd, phase: Gone}]"), `spec.members[0].phase: Unsupported value: "Gone"`},
		"a host that nobody has chosen":        {fmt.Sprintf(config, "x", "hostRef: {name: e1, role: etcd}"), "spec.hostRef: Forbidden"},
		"a hook and limits": {object: fmt.Sprintf(config, "asked", `hooks: [{name: disk, task: containerd, when: Before, commands: [mount -a]}], `+
			`limits: [{step: hook/disk, timeoutSeconds: 600, concurrency: 1}, {task: images, attempts: 3}]`)},
		"hooks and limits of all hosts": {object: fmt.Sprintf(controlPlane, "asked", `cluster: {hooks: [{name: disk, task: containerd, when: After, commands: [a]}], `+
			`limits: [{task: images, concurrency: 5}]}`)},
		"a hook of a task that there is not":   {fmt.Sprintf(config, "x", `hooks: [{name: disk, task: docker, when: Before, commands: [a]}]`), `spec.hooks[0].task: Unsupported value: "docker": supported values: "await", "cni"`},
		"a hook at another time":               {fmt.Sprintf(config, "x", `hooks: [{name: disk, task: containerd, when: During, commands: [a]}]`), `spec.hooks[0].when: Unsupported value: "During"`},
		"a hook without commands":              {fmt.Sprintf(config, "x", `hooks: [{name: disk, task: containerd, when: After}]`), "spec.hooks[0].commands: Required value"},
		"two hooks of one name":                {fmt.Sprintf(config, "x", `hooks: [{name: a, task: cni, when: After, commands: [a]}, {name: a, task: cni, when: Before, commands: [a]}]`), "spec.hooks[1]: Duplicate value"},
		"a limit of nothing":                   {fmt.Sprintf(config, "x", `limits: [{attempts: 2}]`), "set exactly one of task and step"},
		"a limit of a task and a step":         {fmt.Sprintf(config, "x", `limits: [{task: kubeadm, step: kubeadm/join, attempts: 2}]`), "set exactly one of task and step"},
		"a limit that limits nothing":          {fmt.Sprintf(config, "x", `limits: [{task: kubeadm}]`), "set at least one of timeoutSeconds, attempts and concurrency"},
		"a limit of a step that there is not":  {fmt.Sprintf(controlPlane, "x", `cluster: {limits: [{step: kubeadm init, attempts: 2}]}`), `spec.cluster.limits[0].step: Unsupported value: "kubeadm init"`},
		"a limit of hosts on the controller":   {fmt.Sprintf(controlPlane, "x", `cluster: {limits: [{task: flannel, concurrency: 2}]}`), "spec.cluster.limits[0].concurrency: Forbidden: flannel runs on the controller"},
		"an endless limit":                     {fmt.Sprintf(config, "x", `limits: [{task: kubeadm, timeoutSeconds: 86401}]`), "spec.limits[0].timeoutSeconds: Invalid value"},
		"empty templates":                      {object: fmt.Sprintf(template, "bootstrap", "KubexmConfigTemplate")},
		"an empty cluster template":            {object: fmt.Sprintf(template, "infrastructure", "KubexmClusterTemplate")},
		"a cluster template's bad endpoint":    {fmt.Sprintf(clusterTemplate, "Api_Prod"), "spec.template.spec.controlPlaneEndpoint.host: Invalid value"},
		"an empty machine template":            {object: fmt.Sprintf(template, "infrastructure", "KubexmMachineTemplate")},
		"a control plane":                      {object: fmt.Sprintf(controlPlane, "prod", "")},
		"a control plane's cluster":            {object: fmt.Sprintf(controlPlane, "full", "cluster: {network: {plugin: flannel, podCIDRs: [10.233.64.0/18]}, kubernetes: {proxy: {mode: nftables}}, system: {swap: Keep}}")},
		"three replicas":                       {fmt.Sprintf(controlPlane, "x", "replicas: 3"), "need a load balancer"},
		"two replicas with etcd on them":       {fmt.Sprintf(controlPlane, "x", "replicas: 2\n  cluster: {controlPlaneEndpoint: {internal: haproxy}}"), "use an odd number"},
		"two replicas with etcd elsewhere":     {object: fmt.Sprintf(controlPlane, "two", "replicas: 2\n  cluster: {controlPlaneEndpoint: {internal: haproxy}, etcd: {hosts: {names: [e1]}}}")},
		"a network plugin that comes later":    {fmt.Sprintf(controlPlane, "x", "cluster: {network: {plugin: calico}}"), `spec.cluster.network.plugin: Unsupported value: "calico"`},
		"networks that overlap":                {fmt.Sprintf(controlPlane, "x", "cluster: {network: {podCIDRs: [10.0.0.0/16], serviceCIDRs: [10.0.0.0/20]}}"), "spec.cluster.network.serviceCIDRs[0]: Invalid value"},
		"a bundle from nowhere in particular":  {fmt.Sprintf(controlPlane, "x", "cluster: {artifacts: {bundle: {sha256: \""+strings.Repeat("0", 64)+"\"}}}"), "spec.cluster.artifacts.bundle.path"},
		"a rollout":                            {fmt.Sprintf(controlPlane, "x", `rollout: {after: "2026-11-21T00:00:00Z"}`), "spec.rollout.after: Forbidden"},
		"an empty remediation template":        {object: fmt.Sprintf(template, "bootstrap", "KubexmRemediationTemplate")},
		"a remediation template":               {object: fmt.Sprintf(remediationTemplate, "workers", "convergeTimeoutSeconds: 0, rebootTimeoutSeconds: 900, minHealthyPeriodSeconds: 0")},
		"a remediation before its time":        {fmt.Sprintf(remediationTemplate, "x", "convergeTimeoutSeconds: -1"), "spec.template.spec.convergeTimeoutSeconds: Invalid value: -1"},
		"a remediation's unknown field":        {fmt.Sprintf(remediationTemplate, "x", "rebootTimeout: 10m"), `unknown field "spec.template.spec.rebootTimeout"`},
		"an unknown field, asked to be strict": {fmt.Sprintf(controlPlane, "x", "colour: blue"), `unknown field "spec.colour"`},
	} {
		t.Run(name, func(t *testing.T) {
			err := create(t, test.object, client.FieldValidation(metav1.FieldValidationStrict))
			if test.want == "" && err != nil || test.want != "" && (err == nil || !strings.Contains(err.Error(), test.want)) {
				t.Errorf("got  %v\nwant %s", err, test.want)
			}
		})
	}
}

// What Go leaves out of an object, its definition does not ask for.
func TestObjectsOfPrograms(t *testing.T) {
	meta := metav1.ObjectMeta{Namespace: metav1.NamespaceDefault, Name: "from-go"}
	controlPlane := &controlplanev1.KubexmControlPlane{ObjectMeta: meta, Spec: controlplanev1.KubexmControlPlaneSpec{
		Version: "1.36.3",
		MachineTemplate: controlplanev1.MachineTemplate{Spec: controlplanev1.MachineTemplateSpec{
			InfrastructureRef: clusterv1.ContractVersionedObjectReference{APIGroup: infrav1.GroupVersion.Group, Kind: "KubexmMachineTemplate", Name: "masters"},
		}},
	}}
	for _, object := range []client.Object{
		controlPlane,
		&controlplanev1.KubexmControlPlaneTemplate{ObjectMeta: meta},
		&bootstrapv1.KubexmClusterConfig{ObjectMeta: meta, Spec: bootstrapv1.KubexmClusterConfigSpec{Version: "1.36.3"}},
		&bootstrapv1.KubexmConfig{ObjectMeta: meta},
		&bootstrapv1.KubexmConfigTemplate{ObjectMeta: meta},
		&bootstrapv1.KubexmRemediation{ObjectMeta: meta},
		&bootstrapv1.KubexmRemediationTemplate{ObjectMeta: meta},
		&infrav1.KubexmCluster{ObjectMeta: meta},
		&infrav1.KubexmClusterTemplate{ObjectMeta: meta},
		&infrav1.KubexmMachine{ObjectMeta: meta},
		&infrav1.KubexmMachineTemplate{ObjectMeta: meta},
	} {
		NewWithT(t).Eventually(func() error { return api.Create(t.Context(), object) }, 30*time.Second).Should(Succeed(), "%T", object)
	}
	if controlPlane.Spec.Version != "v1.36.3" || ptr.Deref(controlPlane.Spec.Replicas, 0) != 1 {
		t.Errorf("the defaults are not there: version %s, %d replicas", controlPlane.Spec.Version, ptr.Deref(controlPlane.Spec.Replicas, 0))
	}
	// The scale subresource passes webhooks by, and not the definition.
	scale := &autoscalingv1.Scale{Spec: autoscalingv1.ScaleSpec{Replicas: 3}}
	if err := api.SubResource("scale").Update(t.Context(), controlPlane, client.WithSubResourceBody(scale)); err == nil ||
		!strings.Contains(err.Error(), "several control plane Machines need a load balancer") {
		t.Errorf("scaling to three: %v", err)
	}
}

// Templates do not change, but Cluster API's topology controller may ask what would.
func TestTemplatesDoNotChange(t *testing.T) {
	g := NewWithT(t)
	object := &bootstrapv1.KubexmConfigTemplate{ObjectMeta: metav1.ObjectMeta{Namespace: metav1.NamespaceDefault, Name: "fixed"}}
	g.Eventually(func() error { return api.Create(t.Context(), object) }, 30*time.Second).Should(Succeed())
	change := client.RawPatch(types.MergePatchType, []byte(
		`{"metadata":{"annotations":{"`+clusterv1.TopologyDryRunAnnotation+`":""}},"spec":{"template":{"spec":{"kubelet":{"maxPods":7}}}}}`))
	g.Expect(api.Patch(t.Context(), object.DeepCopy(), change)).To(MatchError(ContainSubstring("create another KubexmConfigTemplate and refer to that")))
	g.Expect(api.Patch(t.Context(), object.DeepCopy(), change, client.DryRunAll)).To(Succeed())
	label := client.RawPatch(types.MergePatchType, []byte(`{"metadata":{"labels":{"a":"b"}}}`))
	g.Expect(api.Patch(t.Context(), object.DeepCopy(), label)).To(Succeed())
}
