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
	infrav1 "github.com/mensylisir/cluster-api-provider-kubexm/exp/infrastructure/api/v1alpha1"
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
			return errors.Join(bootstrapwebhooks.SetupWithManager(mgr),
				controlplanewebhooks.SetupWithManager(mgr), infrawebhooks.SetupWithManager(mgr))
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
apiVersion: infrastructure.cluster.x-k8s.io/v1alpha1
kind: KubexmHost
metadata: {name: %s}
spec:
  address: 172.16.0.17
  access: {user: ops, credentials: {secretRef: {name: fleet-ssh}}, hostKeys: {pinned: ["` + fingerprint + `"]}}
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
	machine = `
apiVersion: infrastructure.cluster.x-k8s.io/v1alpha1
kind: KubexmMachine
metadata: {name: %s}
spec: {%s}
`
	clusterTemplate = `
apiVersion: infrastructure.cluster.x-k8s.io/v1alpha1
kind: KubexmClusterTemplate
metadata: {name: x}
spec: {template: {spec: {controlPlaneEndpoint: {host: %s, port: 6443}}}}
`
	template = `
apiVersion: %s.cluster.x-k8s.io/%s
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
		"a host without a key": {strings.Replace(fmt.Sprintf(host, "x"), fingerprint, "", 1), "spec.access.hostKeys.pinned[0]: Invalid value"},
		"a host's bad key": {
			strings.Replace(fmt.Sprintf(host, "x"), "SHA256:u", "SHA512:u", 1),
			"spec.access.hostKeys.pinned[0]: Invalid value: \"SHA512:uNiVztksCsDhcc0u9e8BrWfPrQmMlQWbZ+Yb9Jgkl3c\"",
		},
		"a host behind another": {object: strings.Replace(fmt.Sprintf(host, "behind"), `]}}`,
			`]}, proxyJump: {host: bastion.example.org, user: jump, credentials: {secretRef: {name: jump}}, hostKeys: {pinned: ["`+fingerprint+`"]}}}`, 1)},
		"a host behind nobody": {
			strings.Replace(fmt.Sprintf(host, "x"), `]}}`, `]}, proxyJump: {host: bastion.example.org}}`, 1), "spec.access.proxyJump.user",
		},
		"control plane hosts of one name": {fmt.Sprintf(controlPlane, "x", `node: {hostRef: {name: e1, role: Etcd}}`), "are one host's, and these are for many"},
		"control plane hosts that begin":  {fmt.Sprintf(controlPlane, "x", `node: {bootstrapMode: Init}`), "are one host's, and these are for many"},
		"an empty config":                 {object: fmt.Sprintf(config, "empty", "")},
		"a config":                        {object: fmt.Sprintf(config, "full", `kubelet: {maxPods: 50}, nodeLabels: {pool: gpu}, files: [{path: /etc/gpu.conf, contentFrom: {secret: {name: gpu, key: conf}}}]`)},
		"bootstrap data of Ignition":      {object: fmt.Sprintf(config, "ignition", `format: Ignition`)},
		"a format in others' words":       {fmt.Sprintf(config, "x", `format: ignition`), "spec.format: Unsupported value"},
		"an authority that is made":       {object: fmt.Sprintf(config, "authority", `access: {credentials: {userCA: {validitySeconds: 120}}}`)},
		"an authority of nothing":         {fmt.Sprintf(config, "x", `access: {credentials: {userCA: {}}}`), "should have at least 1 properties"},
		"a file with two contents":        {fmt.Sprintf(config, "x", `files: [{path: /etc/a, content: a, contentFrom: {secret: {name: a, key: a}}}]`), "set exactly one of content and contentFrom"},
		"files of each kind": {object: fmt.Sprintf(config, "files", `files: [{path: /etc/a, content: aGVsbG8K, encoding: Base64}, {path: /etc/b, content: x, append: Enabled}, `+
			`{path: /etc/c, content: "{{ .name }}", contentFormat: Template}, {path: /etc/d, contentFrom: {secret: {name: a, key: a}}, encoding: Gzip, permissions: "0640"}]`)},
		"a Secret that is appended":      {fmt.Sprintf(config, "x", `files: [{path: /etc/a, contentFrom: {secret: {name: a, key: a}}, append: Enabled}]`), "content of a Secret cannot be appended"},
		"an appended file's permissions": {fmt.Sprintf(config, "x", `files: [{path: /etc/a, content: a, append: Enabled, permissions: "0600"}]`), "keeps its permissions and owner"},
		"an encoded template":            {fmt.Sprintf(config, "x", `files: [{path: /etc/a, content: YQ==, encoding: Base64, contentFormat: Template}]`), "a template is written in content, without encoding"},
		"gzip as a text":                 {fmt.Sprintf(config, "x", `files: [{path: /etc/a, content: a, encoding: Gzip}]`), "use GzipBase64"},
		"a template of nobody's name":    {fmt.Sprintf(config, "x", `files: [{path: /etc/a, content: "{{ .nobody }}", contentFormat: Template}]`), "the template cannot be rendered"},
		"a flag that has a field":        {fmt.Sprintf(config, "x", `kubelet: {extraArgs: [{name: max-pods, value: "3"}]}`), "spec.kubelet.extraArgs[0].name: Forbidden"},
		"a cluster's config": {object: fmt.Sprintf(clusterConfig, "full", `apiServerVersion: v1.36.3, controlPlaneEndpoint: {host: 10.1.0.1, port: 6443}, `+
			`cluster: {etcd: {hosts: {names: [e1]}}}, members: [{name: e1, role: Etcd, phase: Joining}, {name: cp1, role: ControlPlane, address: 10.1.0.2, phase: Serving, configName: a}]`)},
		"a cluster's config's bad network":     {fmt.Sprintf(clusterConfig, "x", "cluster: {network: {podCIDRs: [10.0.0.0/16], serviceCIDRs: [10.0.0.0/20]}}"), "spec.cluster.network.serviceCIDRs[0]: Invalid value"},
		"the fingerprint of an encryption key": {object: fmt.Sprintf(clusterConfig, "encrypted", "authorities: [{name: encryption, fingerprint: \"sha256:"+strings.Repeat("0", 64)+"\"}]")},
		"the fingerprint of another thing": {fmt.Sprintf(clusterConfig, "x",
			"authorities: [{name: ssh, fingerprint: \"sha256:"+strings.Repeat("0", 64)+"\"}]"), `spec.authorities[0].name: Unsupported value: "ssh"`},
		"encryption by nobody knows what": {fmt.Sprintf(controlPlane, "x", "cluster: {kubernetes: {encryptionAtRest: {provider: AESGCM}}}"),
			`spec.cluster.kubernetes.encryptionAtRest.provider: Unsupported value: "AESGCM"`},
		"a worker as a member":          {fmt.Sprintf(clusterConfig, "x", "members: [{name: w1, role: Worker, phase: Serving}]"), "workers are no members"},
		"a member's bad address":        {fmt.Sprintf(clusterConfig, "x", "members: [{name: e1, role: Etcd, phase: Serving, address: e1.example}]"), "spec.members[0].address: Invalid value"},
		"a member in no phase":          {fmt.Sprintf(clusterConfig, "x", "members: [{name: e1, role: Etcd, phase: Gone}]"), `spec.members[0].phase: Unsupported value: "Gone"`},
		"a host that nobody has chosen": {fmt.Sprintf(config, "x", "hostRef: {name: e1, role: Etcd}"), "spec.hostRef: Forbidden"},
		"a hook and limits": {object: fmt.Sprintf(config, "asked", `hooks: [{name: disk, task: containerd, when: Before, commands: [mount -a]}], `+
			`limits: [{step: hook/disk, timeoutSeconds: 600, concurrency: 1}, {task: images, attempts: 3}]`)},
		"hooks and limits of all hosts": {object: fmt.Sprintf(controlPlane, "asked", `cluster: {hooks: [{name: disk, task: containerd, when: After, commands: [a]}], `+
			`limits: [{task: images, concurrency: 5}]}`)},
		"a hook of a task that there is not": {fmt.Sprintf(config, "x",
			`hooks: [{name: disk, task: docker, when: Before, commands: [a]}]`), `spec.hooks[0].task: Unsupported value: "docker": supported values: "await", "cni"`},
		"a hook at another time":       {fmt.Sprintf(config, "x", `hooks: [{name: disk, task: containerd, when: During, commands: [a]}]`), `spec.hooks[0].when: Unsupported value: "During"`},
		"a hook without commands":      {fmt.Sprintf(config, "x", `hooks: [{name: disk, task: containerd, when: After}]`), "spec.hooks[0].commands: Required value"},
		"two hooks of one name":        {fmt.Sprintf(config, "x", `hooks: [{name: a, task: cni, when: After, commands: [a]}, {name: a, task: cni, when: Before, commands: [a]}]`), "spec.hooks[1]: Duplicate value"},
		"a limit of nothing":           {fmt.Sprintf(config, "x", `limits: [{attempts: 2}]`), "set exactly one of task and step"},
		"a limit of a task and a step": {fmt.Sprintf(config, "x", `limits: [{task: kubeadm, step: kubeadm/join, attempts: 2}]`), "set exactly one of task and step"},
		"a limit that limits nothing":  {fmt.Sprintf(config, "x", `limits: [{task: kubeadm}]`), "set at least one of timeoutSeconds, attempts and concurrency"},
		"a limit of a step that there is not": {fmt.Sprintf(controlPlane, "x", `cluster: {limits: [{step: kubeadm init, attempts: 2}]}`),
			`spec.cluster.limits[0].step: Unsupported value: "kubeadm init"`},
		"a limit of hosts on the controller":    {fmt.Sprintf(controlPlane, "x", `cluster: {limits: [{task: flannel, concurrency: 2}]}`), "spec.cluster.limits[0].concurrency: Forbidden: flannel runs on the controller"},
		"an endless limit":                      {fmt.Sprintf(config, "x", `limits: [{task: kubeadm, timeoutSeconds: 86401}]`), "spec.limits[0].timeoutSeconds: Invalid value"},
		"empty templates":                       {object: fmt.Sprintf(template, "bootstrap", "v1beta1", "KubexmConfigTemplate")},
		"an empty cluster template":             {object: fmt.Sprintf(template, "infrastructure", "v1alpha1", "KubexmClusterTemplate")},
		"a cluster template's bad endpoint":     {fmt.Sprintf(clusterTemplate, "Api_Prod"), "spec.template.spec.controlPlaneEndpoint.host: Invalid value"},
		"an empty machine template":             {object: fmt.Sprintf(template, "infrastructure", "v1alpha1", "KubexmMachineTemplate")},
		"a control plane":                       {object: fmt.Sprintf(controlPlane, "prod", "")},
		"a control plane's cluster":             {object: fmt.Sprintf(controlPlane, "full", "cluster: {network: {plugin: Flannel, podCIDRs: [10.233.64.0/18]}, kubernetes: {proxy: {mode: nftables}}, system: {swap: Keep}}")},
		"three replicas":                        {fmt.Sprintf(controlPlane, "x", "replicas: 3"), "need a load balancer"},
		"two replicas with etcd on them":        {fmt.Sprintf(controlPlane, "x", "replicas: 2\n  cluster: {loadBalancer: {type: NodeLocal}}"), "use an odd number"},
		"two replicas with etcd elsewhere":      {object: fmt.Sprintf(controlPlane, "two", "replicas: 2\n  cluster: {loadBalancer: {type: NodeLocal}, etcd: {hosts: {names: [e1]}}}")},
		"eleven replicas with etcd on them":     {fmt.Sprintf(controlPlane, "x", "replicas: 11\n  cluster: {loadBalancer: {type: NodeLocal}}"), "at most 9"},
		"a load balancer of the infrastructure": {object: fmt.Sprintf(controlPlane, "theirs", "replicas: 3\n  cluster: {loadBalancer: {type: Infrastructure}}")},
		"keepalived of another type":            {fmt.Sprintf(controlPlane, "x", "cluster: {loadBalancer: {type: NodeLocal, keepalived: {proxy: Nginx}}}"), "no other type takes keepalived"},
		"an endpoint without a port":            {fmt.Sprintf(controlPlane, "x", "controlPlaneEndpoint: {host: 10.1.0.100}"), "give host and port"},
		"etcd that nobody knows":                {fmt.Sprintf(controlPlane, "x", "cluster: {etcd: {type: External}}"), "the type External needs external"},
		"a canary without InPlace":              {fmt.Sprintf(controlPlane, "x", "rollout: {strategy: {inPlace: {canary: {settleSeconds: 60}}}}"), "set type to InPlace"},
		"nothing but nodes":                     {object: fmt.Sprintf(controlPlane, "bare", "cluster: {network: {plugin: None}, dns: {type: None}, kubernetes: {proxy: {mode: None}}}")},
		"flannel without flannel":               {fmt.Sprintf(controlPlane, "x", "cluster: {network: {plugin: None, flannel: {mtu: 1400}}}"), "it has an effect on the plugin Flannel alone"},
		"calico by default":                     {fmt.Sprintf(controlPlane, "x", "cluster: {network: {calico: {vethMTU: 1400}}}"), "it has an effect on the plugin Calico alone"},
		"names of nobody's DNS server":          {fmt.Sprintf(controlPlane, "x", "cluster: {dns: {type: None, etcHosts: [{address: 10.0.0.1, hostnames: [a.example]}]}}"), "it has no effect on the type None"},
		"what nobody masquerades":               {fmt.Sprintf(controlPlane, "x", "cluster: {kubernetes: {proxy: {mode: None, masquerade: All}}}"), "it has no effect on the mode None"},
		"ipvs by another mode":                  {fmt.Sprintf(controlPlane, "x", "cluster: {kubernetes: {proxy: {ipvs: {excludeCIDRs: [10.9.0.0/16]}}}}"), "it has an effect on the mode ipvs alone"},
		"a host that is named and preferred":    {fmt.Sprintf(machine, "x", "hostName: a, preferences: [{weight: 1, selector: {matchLabels: {a: b}}}]"), "remove hostName or preferences"},
		"requirements of nothing":               {fmt.Sprintf(machine, "x", "requirements: {}"), "spec.requirements"},
		"a weight of nothing":                   {fmt.Sprintf(machine, "x", "preferences: [{weight: 0, selector: {matchLabels: {a: b}}}]"), "weight"},
		"a host that is named and selected":     {fmt.Sprintf(machine, "x", "hostName: a, hostSelector: {matchLabels: {a: b}}"), "exclude each other"},
		"a network plugin that comes later":     {fmt.Sprintf(controlPlane, "x", "cluster: {network: {plugin: cilium}}"), `spec.cluster.network.plugin: Unsupported value: "cilium"`},
		"networks that overlap":                 {fmt.Sprintf(controlPlane, "x", "cluster: {network: {podCIDRs: [10.0.0.0/16], serviceCIDRs: [10.0.0.0/20]}}"), "spec.cluster.network.serviceCIDRs[0]: Invalid value"},
		"a bundle from nowhere in particular": {fmt.Sprintf(controlPlane, "x",
			"cluster: {artifacts: {bundle: {sha256: \""+strings.Repeat("0", 64)+"\"}}}"), "spec.cluster.artifacts.bundle.path"},
		"a rollout":                            {fmt.Sprintf(controlPlane, "x", `rollout: {after: "2026-11-21T00:00:00Z"}`), "spec.rollout.after: Forbidden"},
		"an empty remediation template":        {object: fmt.Sprintf(template, "bootstrap", "v1beta1", "KubexmRemediationTemplate")},
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

// TestSetOnce: the API server itself keeps what was set once, and says what to do.
func TestSetOnce(t *testing.T) {
	for name, test := range map[string]struct{ object, change, want string }{
		"providerid": {fmt.Sprintf(machine, "once-id", "providerID: kubexm://default/a"), `{"providerID": "kubexm://default/b"}`, "cannot be changed once it is set"},
		"no-id":      {fmt.Sprintf(machine, "once-no-id", "providerID: kubexm://default/a"), `{"providerID": null}`, "cannot be changed once it is set"},
		"hostname":   {fmt.Sprintf(machine, "once-name", "providerID: kubexm://default/a"), `{"hostName": "b"}`, "the Machine has its host"},
		"claim": {
			fmt.Sprintf(host, "once-claim") + "  claimRef: {name: a, clusterName: prod}\n", `{"claimRef": {"name": "b"}}`,
			"delete its Machine, and the host is reset and released",
		},
		"claim-after-a-move": {fmt.Sprintf(host, "once-moved") + "  claimRef: {name: a, clusterName: prod, uid: x}\n", `{"claimRef": {"uid": "y"}}`, ""},
		"network": {fmt.Sprintf(controlPlane, "once-network", "cluster: {network: {plugin: None}}"),
			`{"cluster": {"network": {"plugin": "Flannel"}}}`, "set it back, or create another cluster"},
		"dns": {fmt.Sprintf(controlPlane, "once-dns", "cluster: {dns: {type: None}}"), `{"cluster": {"dns": {"type": "CoreDNS"}}}`, "set it back, or create another cluster"},
		"etcd": {fmt.Sprintf(controlPlane, "once-etcd", "cluster: {etcd: {type: Kubeadm, dataDir: /data/a}, kubernetes: {type: Kubeadm}}"),
			`{"cluster": {"etcd": {"type": "Binary", "dataDir": "/data/b"}}}`, "spec.cluster.etcd.type: Invalid value"},
		"etcd-data": {fmt.Sprintf(controlPlane, "once-data", "cluster: {etcd: {dataDir: /data/a}}"),
			`{"cluster": {"etcd": {"dataDir": "/data/b"}}}`, "spec.cluster.etcd.dataDir: Invalid value"},
		"runtime": {fmt.Sprintf(controlPlane, "once-runtime", "cluster: {containerRuntime: {type: Containerd, dataDir: /data/a}}"),
			`{"cluster": {"containerRuntime": {"type": "CRIO"}}}`, "spec.cluster.containerRuntime.type: Invalid value"},
		"runtime-data": {fmt.Sprintf(controlPlane, "once-images", "cluster: {containerRuntime: {dataDir: /data/a}}"),
			`{"cluster": {"containerRuntime": {"dataDir": "/data/b"}}}`, "spec.cluster.containerRuntime.dataDir: Invalid value"},
		"domain": {fmt.Sprintf(controlPlane, "once-domain", "cluster: {dns: {clusterDomain: a.local}}"),
			`{"cluster": {"dns": {"clusterDomain": "b.local"}}}`, "spec.cluster.dns.clusterDomain: Invalid value"},
		"authority": {fmt.Sprintf(controlPlane, "once-ca", "cluster: {certificates: {caValidityDays: 3650}}"),
			`{"cluster": {"certificates": {"caValidityDays": 365}}}`, "spec.cluster.certificates.caValidityDays: Invalid value"},
		"node-mask": {fmt.Sprintf(controlPlane, "once-mask", "cluster: {kubernetes: {nodeCIDRMaskSize: 24}}"),
			`{"cluster": {"kubernetes": {"nodeCIDRMaskSize": 25}}}`, "spec.cluster.kubernetes.nodeCIDRMaskSize: Invalid value"},
		"proxy":      {fmt.Sprintf(controlPlane, "once-proxy", "cluster: {kubernetes: {proxy: {mode: ipvs}}}"), `{"cluster": {"kubernetes": {"proxy": {"mode": "None"}}}}`, "to or from None"},
		"proxy-mode": {fmt.Sprintf(controlPlane, "once-mode", "cluster: {kubernetes: {proxy: {mode: iptables}}}"), `{"cluster": {"kubernetes": {"proxy": {"mode": "nftables"}}}}`, ""},
	} {
		t.Run(name, func(t *testing.T) {
			if err := create(t, test.object); err != nil {
				t.Fatal(err)
			}
			object := &unstructured.Unstructured{}
			if err := yaml.Unmarshal([]byte(test.object), &object.Object); err != nil {
				t.Fatal(err)
			}
			object.SetNamespace(metav1.NamespaceDefault)
			err := api.Patch(t.Context(), object, client.RawPatch(types.MergePatchType, []byte(`{"spec":`+test.change+`}`)))
			if test.want == "" && err != nil || test.want != "" && (err == nil || !strings.Contains(err.Error(), test.want)) {
				t.Errorf("got  %v\nwant %s", err, test.want)
			}
		})
	}
}

// TestBootstrapModeStays: the API server itself keeps what was set once, whoever answers for the webhooks.
func TestBootstrapModeStays(t *testing.T) {
	object := &unstructured.Unstructured{}
	NewWithT(t).Expect(yaml.Unmarshal([]byte(fmt.Sprintf(config, "begins", "bootstrapMode: Init")), &object.Object)).To(Succeed())
	object.SetNamespace(metav1.NamespaceDefault)
	NewWithT(t).Expect(create(t, fmt.Sprintf(config, "begins", "bootstrapMode: Init"))).To(Succeed())
	for _, body := range []string{`{"spec": {"bootstrapMode": "Join"}}`, `{"spec": {"bootstrapMode": null}}`, `{"spec": null}`} {
		err := api.Patch(t.Context(), object.DeepCopy(), client.RawPatch(types.MergePatchType, []byte(body)))
		if err == nil || !strings.Contains(err.Error(), "cannot be changed once the host has initialized or joined") {
			t.Errorf("%s: %v", body, err)
		}
	}
	patch := client.RawPatch(types.MergePatchType, []byte(`{"spec": {"nodeLabels": {"disk": "ssd"}}}`))
	NewWithT(t).Expect(api.Patch(t.Context(), object.DeepCopy(), patch)).To(Succeed())
}
