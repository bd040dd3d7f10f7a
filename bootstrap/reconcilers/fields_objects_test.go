// Copyright 2026 The cluster-api-provider-kubexm Authors.
// SPDX-License-Identifier: Apache-2.0

package reconcilers

import (
	"bytes"
	"encoding/json"
	"errors"
	"fmt"
	"net/http"
	"net/http/httptest"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	admissionv1 "k8s.io/api/admission/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/apimachinery/pkg/util/validation/field"
	restclient "k8s.io/client-go/rest"
	"k8s.io/utils/ptr"
	clusterv1 "sigs.k8s.io/cluster-api/api/core/v1beta2"
	"sigs.k8s.io/cluster-api/feature"
	ctrl "sigs.k8s.io/controller-runtime"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/client/apiutil"
	"sigs.k8s.io/controller-runtime/pkg/client/fake"
	metricsserver "sigs.k8s.io/controller-runtime/pkg/metrics/server"
	"sigs.k8s.io/controller-runtime/pkg/webhook"

	bootstrapv1 "github.com/mensylisir/cluster-api-provider-kubexm/bootstrap/api/v1beta1"
	"github.com/mensylisir/cluster-api-provider-kubexm/bootstrap/infra"
	bootstrapwebhooks "github.com/mensylisir/cluster-api-provider-kubexm/bootstrap/webhooks"
	controlplanev1 "github.com/mensylisir/cluster-api-provider-kubexm/controlplane/api/v1beta1"
	"github.com/mensylisir/cluster-api-provider-kubexm/controlplane/desired"
	"github.com/mensylisir/cluster-api-provider-kubexm/controlplane/snapshot"
	controlplanewebhooks "github.com/mensylisir/cluster-api-provider-kubexm/controlplane/webhooks"
	infrav1 "github.com/mensylisir/cluster-api-provider-kubexm/exp/infrastructure/api/v1alpha1"
	infrawebhooks "github.com/mensylisir/cluster-api-provider-kubexm/exp/infrastructure/webhooks"
	"github.com/mensylisir/cluster-api-provider-kubexm/pkg/artifact"
	"github.com/mensylisir/cluster-api-provider-kubexm/pkg/host"
	"github.com/mensylisir/cluster-api-provider-kubexm/pkg/pipeline"
	"github.com/mensylisir/cluster-api-provider-kubexm/pkg/plan"
	"github.com/mensylisir/cluster-api-provider-kubexm/pkg/spec"
	"github.com/mensylisir/cluster-api-provider-kubexm/pkg/step"
)

func testScheme(t *testing.T) *runtime.Scheme {
	t.Helper()
	scheme := runtime.NewScheme()
	if err := errors.Join(bootstrapv1.AddToScheme(scheme), controlplanev1.AddToScheme(scheme), infrav1.AddToScheme(scheme)); err != nil {
		t.Fatal(err)
	}
	return scheme
}

// webhookMux are the webhooks of all our kinds, as managers serve them.
type webhookMux struct {
	mux    *http.ServeMux
	scheme *runtime.Scheme
}

func serveWebhooks(t *testing.T) *webhookMux {
	t.Helper()
	if err := feature.MutableGates.Set(string(feature.MachineTaintPropagation) + "=true"); err != nil {
		t.Fatal(err)
	}
	scheme, server := testScheme(t), webhook.NewServer(webhook.Options{})
	// Nobody is connected to.
	mgr, err := ctrl.NewManager(&restclient.Config{Host: "127.0.0.1:1"}, ctrl.Options{
		Scheme: scheme, WebhookServer: server, Metrics: metricsserver.Options{BindAddress: "0"},
	})
	if err != nil {
		t.Fatal(err)
	}
	if err := errors.Join(
		bootstrapwebhooks.SetupWithManager(mgr), controlplanewebhooks.SetupWithManager(mgr), infrawebhooks.SetupWithManager(mgr),
	); err != nil {
		t.Fatal(err)
	}
	return &webhookMux{server.WebhookMux(), scheme}
}

// bySchema is what an API server refuses of an object before it asks a webhook.
func bySchema(object client.Object) []refusal {
	shared, node := spec.Cluster{}, spec.Node{}
	at, of := field.NewPath("spec", "cluster"), field.NewPath("spec")
	switch o := object.(type) {
	case *controlplanev1.KubexmControlPlane:
		shared, node, of = o.Spec.Cluster, o.Spec.Node.Node, of.Child("node")
	case *bootstrapv1.KubexmClusterConfig:
		shared = o.Spec.Cluster
	case *bootstrapv1.KubexmConfig:
		node = o.Spec.Node
	case *bootstrapv1.KubexmConfigTemplate:
		node, of = o.Spec.Template.Spec.Node, of.Child("template", "spec")
	default:
		return nil
	}
	shared, node = *shared.DeepCopy(), *node.DeepCopy()
	shared.Default()
	node.Default()
	rules := append(shared.ValidateRules(at), node.ValidateRules(of)...)
	var refused []refusal
	for _, err := range append(shared.Validate(at), node.Validate(of)...) {
		if !slices.ContainsFunc(rules, func(rule *field.Error) bool { return rule.Error() == err.Error() }) {
			refused = append(refused, refusal{err.Field, err.ErrorBody()})
		}
	}
	return refused
}

// admit asks the schema and the validating webhook of an object's kind about its creation, or about its update where there is an old one,
// and returns the fields that are refused.
func (w *webhookMux) admit(t *testing.T, old, object client.Object) []refusal {
	t.Helper()
	if refused := bySchema(object); len(refused) > 0 {
		return refused
	}
	kind, err := apiutil.GVKForObject(object, w.scheme)
	if err != nil {
		t.Fatal(err)
	}
	encode := func(o client.Object) runtime.RawExtension {
		o = o.DeepCopyObject().(client.Object)
		o.GetObjectKind().SetGroupVersionKind(kind)
		raw, err := json.Marshal(o)
		if err != nil {
			t.Fatal(err)
		}
		return runtime.RawExtension{Raw: raw}
	}
	request := &admissionv1.AdmissionRequest{
		UID: "1", Kind: metav1.GroupVersionKind{Group: kind.Group, Version: kind.Version, Kind: kind.Kind}, Operation: admissionv1.Create,
		Namespace: object.GetNamespace(), Name: object.GetName(), Object: encode(object),
	}
	if old != nil {
		request.Operation, request.OldObject = admissionv1.Update, encode(old)
	}
	body, err := json.Marshal(admissionv1.AdmissionReview{
		TypeMeta: metav1.TypeMeta{APIVersion: "admission.k8s.io/v1", Kind: "AdmissionReview"}, Request: request,
	})
	if err != nil {
		t.Fatal(err)
	}
	path := fmt.Sprintf("/validate-%s-%s-%s", strings.ReplaceAll(kind.Group, ".", "-"), kind.Version, strings.ToLower(kind.Kind))
	posted := httptest.NewRequestWithContext(t.Context(), http.MethodPost, path, bytes.NewReader(body))
	posted.Header.Set("Content-Type", "application/json")
	answered := httptest.NewRecorder()
	w.mux.ServeHTTP(answered, posted)
	var review admissionv1.AdmissionReview
	if err := json.Unmarshal(answered.Body.Bytes(), &review); err != nil || review.Response == nil {
		t.Fatalf("%s answers %d %s: %v", path, answered.Code, answered.Body, err)
	}
	if review.Response.Allowed {
		return nil
	}
	refused := []refusal{}
	if details := review.Response.Result.Details; details != nil {
		for _, cause := range details.Causes {
			refused = append(refused, refusal{cause.Field, cause.Message})
		}
	}
	if len(refused) == 0 {
		refused = append(refused, refusal{message: review.Response.Result.Message})
	}
	return refused
}

// world is a cluster of one kind: what its users write, and a host of each role.
type world struct {
	name         string
	controlPlane *controlplanev1.KubexmControlPlane
	cluster      *clusterv1.Cluster
	bundle       *artifact.Bundle
	// planned are footprints by targets.
	planned map[string]footprint
	// others are plans for a host of another family, by its packages.
	others map[string]*plan.Plan
}

// inventory are the hosts of each world, by role. Each role has one.
var inventory = map[spec.Role]struct{ name, address, internal string }{
	spec.RoleControlPlane: {"cp1", "192.168.0.11", "10.0.0.11"},
	spec.RoleWorker:       {"w1", "192.168.0.21", "10.0.0.21"},
	spec.RoleEtcd:         {"e1", "192.168.0.31", "10.0.0.31"},
	spec.RoleLoadBalancer: {"lb1", "192.168.0.41", "10.0.0.41"},
}

// roles that hosts of the world have.
func (w *world) roles() []spec.Role {
	roles := []spec.Role{spec.RoleControlPlane, spec.RoleWorker}
	shared := w.controlPlane.Spec.Cluster.DeepCopy()
	shared.Default()
	if !shared.Etcd.IsStacked() && shared.Etcd.Type != spec.EtcdExternal {
		roles = append(roles, spec.RoleEtcd)
	}
	if shared.LoadBalancer.Type == spec.LoadBalancerKeepalived {
		roles = append(roles, spec.RoleLoadBalancer)
	}
	return roles
}

func (w *world) members() []bootstrapv1.ClusterMember {
	var members []bootstrapv1.ClusterMember
	for _, role := range w.roles() {
		if h := inventory[role]; role != spec.RoleWorker {
			other := strings.Replace(h.name, "1", "2", 1)
			members = append(members, bootstrapv1.ClusterMember{
				Name: h.name, Role: role, Address: h.internal, Phase: bootstrapv1.MemberServing, ConfigName: "prod-" + h.name,
			}, bootstrapv1.ClusterMember{
				Name: other, Role: role, Address: strings.Replace(h.internal, "10.0.0.", "10.0.1.", 1),
				Phase: bootstrapv1.MemberServing, ConfigName: "prod-" + other,
			})
		}
	}
	bootstrapv1.SortMembers(members)
	return members
}

// state is the world as a control plane's reconciler sees it.
func (w *world) state(object *controlplanev1.KubexmControlPlane) *snapshot.ControlPlane {
	return &snapshot.ControlPlane{Object: object, Cluster: w.cluster, Known: w.members()}
}

// clusterConfig is what the control plane writes for its hosts.
func (w *world) clusterConfig(object *controlplanev1.KubexmControlPlane) *bootstrapv1.KubexmClusterConfig {
	return desired.ClusterConfig(w.state(object), nil, w.members())
}

// scope is what the reconciler of a host's KubexmConfig knows.
func (w *world) scope(object *controlplanev1.KubexmControlPlane, role spec.Role) *scope {
	c, h := w.state(object), inventory[role]
	s := &scope{
		cluster: w.cluster, clusterConfig: w.clusterConfig(object),
		host: &infra.Host{Host: spec.Host{
			Name: h.name, Address: h.address, InternalAddresses: []string{h.internal, "fd00::" + h.internal[len("10.0.0."):]},
			ProviderID: "kubexm://fleet/" + h.name,
		}},
	}
	switch role {
	case spec.RoleControlPlane:
		s.config = desired.Config(c, "prod-"+h.name, spec.BootstrapInit)
		s.machine = desired.Machine(c, "prod-"+h.name, clusterv1.ContractVersionedObjectReference{})
	case spec.RoleWorker:
		s.config = &bootstrapv1.KubexmConfig{ObjectMeta: metav1.ObjectMeta{Namespace: "fleet", Name: "prod-" + h.name}}
		s.machine = &clusterv1.Machine{Spec: clusterv1.MachineSpec{ClusterName: "prod", Version: object.Spec.Version}}
	default:
		s.config = desired.InventoryConfig(c, bootstrapv1.HostReference{Name: h.name, Role: role})
	}
	return s
}

// footprint is what the plan of a host wants.
func (w *world) footprint(t *testing.T, s *scope) footprint {
	t.Helper()
	target, err := targetOf(s)
	if err != nil {
		t.Fatalf("it was admitted, and no plan can be made of it: %v", err)
	}
	raw, err := json.Marshal(target)
	if err != nil {
		t.Fatal(err)
	}
	if known, found := w.planned[string(raw)]; found {
		return known
	}
	seen := host.System{
		Hostname: "m", OSID: "debian", OSVersion: "12", Arch: "amd64", Kernel: "6.1.0", CgroupVersion: 2, CPUs: 4,
		Nameservers: []string{"192.168.0.53"}, DefaultInterface: "eth0", DefaultIPv6: "fd00::5",
	}
	f := emptyFootprint()
	p, err := Pipelines(pipeline.Node{Target: target, System: seen}, w.bundle)
	if err != nil {
		f = footprint{parts: map[string]bool{err.Error(): true}, unplanned: true}
	} else {
		for i := range p.Graph().Len() {
			f.add(t, p.Graph().Node(i).Value)
		}
		// A field that is for hosts of another family has its effect there. What else they get follows from the same fields.
		seen.OSID, seen.OSVersion = "rocky", "9.5"
		system := target.System()
		rpms := strings.Join(system.Packages.RPMs, " ")
		if w.others == nil {
			w.others = map[string]*plan.Plan{}
		}
		if w.others[rpms] == nil {
			if w.others[rpms], err = Pipelines(pipeline.Node{Target: target, System: seen}, w.bundle); err != nil {
				t.Fatalf("it can be planned for on Debian, and not on Rocky Linux: %v", err)
			}
		}
		for i := range w.others[rpms].Graph().Len() {
			if v := w.others[rpms].Graph().Node(i).Value; v.Step.Meta().Name == "system/packages" {
				f.add(t, v)
			}
		}
	}
	w.planned[string(raw)] = f
	return f
}

// add takes in a node: each part of its step, what the step is beside its parts, and its limits. Of a step that is done again with all
// of its parts whenever its input is another, the whole is one part.
func (f footprint) add(t *testing.T, n plan.Node) {
	t.Helper()
	var add func(s step.Step)
	add = func(s step.Step) {
		if whole, ok := s.(step.Sequence); ok {
			for _, part := range whole.Parts {
				add(part)
			}
			if again := slices.ContainsFunc(whole.Parts, func(p step.Step) bool {
				c, ok := p.(step.Command)
				return ok && c.Done.SameInput
			}); !again {
				whole.Parts = nil
			}
			s = whole
		}
		for _, r := range resourcesOf(s) {
			f.resources[n.Host+" "+r] = true
		}
		raw, err := step.Marshal(s)
		if err != nil {
			t.Fatal(err)
		}
		f.parts[n.ID+" "+string(raw)] = true
	}
	add(n.Step)
	limits, err := json.Marshal([]any{n.Meta(), n.Limits})
	if err != nil {
		t.Fatal(err)
	}
	f.parts[n.ID+" is bounded "+string(limits)] = true
}

// resourcesOf is what a part of a step keeps on a host as long as a plan has it.
func resourcesOf(s step.Step) []string {
	switch s := s.(type) {
	case step.File:
		return []string{"file " + s.Path}
	case step.Block:
		return []string{"block " + s.Path + "#" + s.Name}
	case step.Service:
		return []string{"unit " + s.Name}
	case step.Sysctl:
		return []string{"sysctl " + s.Name}
	case step.Module:
		return []string{"module " + s.Name}
	case step.SwapOff:
		return []string{"swap"}
	case step.Package:
		var names []string
		for _, name := range s.Names {
			name, _, _ = strings.Cut(name, "=")
			names = append(names, "package "+name)
		}
		return names
	}
	return nil
}

// all is what the plans of hosts with these roles want.
func (w *world) all(t *testing.T, of func(role spec.Role) *scope, roles ...spec.Role) footprint {
	t.Helper()
	all := emptyFootprint()
	for _, role := range roles {
		all.merge(w.footprint(t, of(role)))
	}
	return all
}

// none is of kinds that no plan is made from.
func none(*testing.T, client.Object) footprint { return emptyFootprint() }

// subjects are objects of all our kinds which, taken together, have each field that there is.
func subjects(t *testing.T) []subject {
	t.Helper()
	bundle, err := artifact.Open(t.Context(), filepath.Join("..", "..", "pkg", "pipeline", "testdata", "bundle"), nil)
	if err != nil {
		t.Fatal(err)
	}
	all := templates()
	for _, w := range worlds(bundle) {
		all = append(all, subject{w.name, w.controlPlane, func(t *testing.T, o client.Object) footprint {
			return w.all(t, func(role spec.Role) *scope { return w.scope(o.(*controlplanev1.KubexmControlPlane), role) }, w.roles()...)
		}})
		shared := w.clusterConfig(w.controlPlane)
		shared.Spec.ControlPlaneRebootTimeoutSeconds = ptr.To[int32](60)
		shared.Spec.Authorities = []bootstrapv1.AuthorityFingerprint{{Name: "ca", Fingerprint: digest([]byte("ca"))}}
		shared.Spec.APIServerVersion = shared.Spec.Version
		all = append(all, subject{w.name, shared, func(t *testing.T, o client.Object) footprint {
			return w.all(t, func(role spec.Role) *scope {
				s := w.scope(w.controlPlane, role)
				s.clusterConfig = o.(*bootstrapv1.KubexmClusterConfig)
				s.cluster = s.cluster.DeepCopy()
				s.cluster.Spec.ControlPlaneEndpoint = clusterv1.APIEndpoint{Host: "api.other.example.org", Port: 9443}
				return s
			}, w.roles()...)
		}})
		for _, role := range w.roles() {
			if role == spec.RoleControlPlane {
				continue // its KubexmConfig is the control plane's spec.node
			}
			config := w.scope(w.controlPlane, role).config
			richNode(&config.Spec.Node, role, w.name)
			config.UID, config.Status.KubernetesVersion = types.UID("1"), w.controlPlane.Spec.Version
			if role == spec.RoleWorker {
				config.Spec.Access, config.Spec.Format = accessOf(w.name, false), bootstrapv1.IgnitionFormat
				closeIn(w.name, &config.Spec)
			}
			all = append(all, subject{fmt.Sprintf("%s-%s", w.name, role), config, func(t *testing.T, o client.Object) footprint {
				s := w.scope(w.controlPlane, role)
				s.config = o.(*bootstrapv1.KubexmConfig)
				return w.footprint(t, s)
			}})
		}
		all = append(all, w.host(), w.freeHost(), w.machine(), w.freeMachine(), w.infrastructure())
	}
	return all
}

// closeIn has hosts of one world closed when they are Nodes: they are known by what the bootstrap data brings, and not reset.
func closeIn(world string, s *bootstrapv1.KubexmConfigSpec) {
	if world == "named" {
		s.AccessPolicy, s.Access.HostKeys, s.Reset.Policy = spec.AccessClosed, spec.HostKeys{}, spec.ResetNever
	}
}

// host is a KubexmHost that a Machine has; a plan has its address, its addresses and its architecture.
func (w *world) host() subject {
	h := w.freeHost().object.(*infrav1.KubexmHost)
	h.Spec.ClaimRef = infrav1.MachineReference{Kind: infrav1.ClaimedByMachine, Name: "prod-w1", ClusterName: "prod", UID: "1"}
	return subject{w.name + "-claimed", h, w.ofHost}
}

// ofHost is what is planned for a host, no matter who has it, once a Machine has claimed it.
func (w *world) ofHost(t *testing.T, o client.Object) footprint {
	t.Helper()
	h := o.DeepCopyObject().(*infrav1.KubexmHost)
	h.Spec.ClaimRef = infrav1.MachineReference{Kind: infrav1.ClaimedByMachine, Name: "prod-w1", ClusterName: "prod"}
	machine := w.machine().object.(*infrav1.KubexmMachine)
	machine.Status.HostRef.Name = h.Name
	c := fake.NewClientBuilder().WithScheme(testScheme(t)).WithObjects(h, machine).Build()
	s := w.scope(w.controlPlane, spec.RoleWorker)
	s.machine.Namespace = "fleet"
	s.machine.Spec.InfrastructureRef = clusterv1.ContractVersionedObjectReference{
		APIGroup: infrav1.GroupVersion.Group, Kind: "KubexmMachine", Name: machine.Name,
	}
	found, err := infra.Of(s.machine, c, c).Host(t.Context(), s.subject())
	if err != nil {
		return footprint{parts: map[string]bool{err.Error(): true}, unplanned: true}
	}
	s.host = found
	return w.footprint(t, s)
}

func (w *world) freeHost() subject {
	h, controller := inventory[spec.RoleWorker], someBMC()
	if len(w.controlPlane.Spec.Cluster.Network.PodCIDRs) == 2 {
		controller = signedBMC()
	}
	return subject{w.name + "-free", &infrav1.KubexmHost{
		ObjectMeta: metav1.ObjectMeta{Namespace: "fleet", Name: h.name},
		Spec: infrav1.KubexmHostSpec{
			Address: h.address, InternalAddresses: w.internal(h.internal), FailureDomain: "rack1", Arch: spec.ArchAMD64,
			Access: accessOf(w.name, true), BMC: controller, Capacity: someCapacity(),
			Quarantine:  infrav1.Quarantine{Reason: "NotReset", Message: "it was another's", Time: metav1.Unix(1, 0)},
			Maintenance: infrav1.Maintenance{Message: "a new disk"},
		},
	}, w.ofHost}
}

// internal are the addresses of a host in the cluster's network: of a family that the cluster lacks, none is used.
func (w *world) internal(address string) []string {
	if len(w.controlPlane.Spec.Cluster.Network.PodCIDRs) == 2 {
		return []string{address, "fd00::21"}
	}
	return []string{address}
}

func (w *world) machine() subject {
	m := w.freeMachine().object.(*infrav1.KubexmMachine)
	m.Spec.ProviderID = "kubexm://fleet/w1"
	return subject{w.name + "-claimed", m, none}
}

func (w *world) freeMachine() subject {
	return subject{w.name + "-free", &infrav1.KubexmMachine{
		ObjectMeta: metav1.ObjectMeta{Namespace: "fleet", Name: "prod-w1"},
		Spec: infrav1.KubexmMachineSpec{
			HostSelector: &metav1.LabelSelector{MatchLabels: map[string]string{"rack": "1"}}, HostName: "w1",
			Requirements: someCapacity(), Preferences: somePreferences(),
		},
	}, none}
}

func (w *world) infrastructure() subject {
	return subject{w.name, &infrav1.KubexmCluster{
		ObjectMeta: metav1.ObjectMeta{Namespace: "fleet", Name: "prod"},
		Spec: infrav1.KubexmClusterSpec{
			ControlPlaneEndpoint: clusterv1.APIEndpoint{Host: "192.168.0.100", Port: 6443},
			FailureDomains: []clusterv1.FailureDomain{
				{Name: "rack1", ControlPlane: ptr.To(true), Attributes: map[string]string{"row": "1"}},
			},
		},
	}, none}
}

func restoreFrom(meta metav1.ObjectMeta, from bootstrapv1.EtcdSnapshotSource) *bootstrapv1.KubexmOperation {
	return &bootstrapv1.KubexmOperation{ObjectMeta: meta, Spec: bootstrapv1.KubexmOperationSpec{
		Type: bootstrapv1.RestoreEtcdType, Target: bootstrapv1.OperationTarget{Kind: bootstrapv1.ClusterTarget, Name: "prod"},
		RestoreEtcd: bootstrapv1.EtcdRestore{Snapshot: from, AcceptedLossSeconds: ptr.To[int32](3600), OfCluster: "prod"},
	}}
}

// templates are objects that others are made from, and remediations.
func templates() []subject {
	remediation := bootstrapv1.KubexmRemediationSpec{
		ConvergeTimeoutSeconds: ptr.To[int32](60), RebootTimeoutSeconds: ptr.To[int32](60), MinHealthyPeriodSeconds: ptr.To[int32](60),
	}
	meta := metav1.ObjectMeta{Namespace: "fleet", Name: "prod"}
	labels := clusterv1.ObjectMeta{Labels: map[string]string{"team": "a", "x": "y"}, Annotations: map[string]string{"note": "b", "x": "y"}}
	all := []subject{
		{"of-workers", &bootstrapv1.KubexmOperation{ObjectMeta: meta, Spec: bootstrapv1.KubexmOperationSpec{
			Type:          bootstrapv1.RebootType,
			Target:        bootstrapv1.OperationTarget{Kind: bootstrapv1.MachineDeploymentTarget, Name: "workers"},
			MaxConcurrent: ptr.To[int32](2), TimeoutSeconds: ptr.To[int32](60), TTLSecondsAfterFinished: ptr.To[int32](60),
		}}, none},
		{"of-etcd", &bootstrapv1.KubexmOperation{ObjectMeta: meta, Spec: bootstrapv1.KubexmOperationSpec{
			Type: bootstrapv1.RestartType, Components: []spec.ComponentName{spec.ComponentEtcd},
			Target: bootstrapv1.OperationTarget{Kind: bootstrapv1.ClusterTarget, Name: "prod"},
		}}, none},
		{"of-certificates", &bootstrapv1.KubexmOperation{ObjectMeta: meta, Spec: bootstrapv1.KubexmOperationSpec{
			Type: bootstrapv1.RenewCertificatesType, Certificates: []spec.CertificateName{"etcd-member"},
			Target: bootstrapv1.OperationTarget{Kind: bootstrapv1.ClusterTarget, Name: "prod"},
		}}, none},
		{"restore-from-host", restoreFrom(meta, bootstrapv1.EtcdSnapshotSource{
			Host: bootstrapv1.EtcdSnapshotOnHost{Name: "cp1", Path: "/var/lib/kubexm/etcd-backups/etcd-prod-20261123T030000Z-cp1.db"},
		}), none},
		{"restore-from-bucket", restoreFrom(meta, bootstrapv1.EtcdSnapshotSource{Bucket: bootstrapv1.EtcdSnapshotInBucket{
			Location: "s3://backups/prod/etcd-prod-20261123T030000Z-cp1.db", Endpoint: "https://s3.example:9000", Region: "eu-west-1",
			SecretRef: spec.SecretReference{Name: "object-store"},
		}}), none},
		{"of-nodes", &bootstrapv1.KubexmRemediation{ObjectMeta: meta, Spec: remediation}, none},
		{"template", &bootstrapv1.KubexmRemediationTemplate{ObjectMeta: meta, Spec: bootstrapv1.KubexmRemediationTemplateSpec{
			Template: bootstrapv1.KubexmRemediationTemplateResource{ObjectMeta: labels, Spec: remediation},
		}}, none},
		{"template", &infrav1.KubexmMachineTemplate{ObjectMeta: meta, Spec: infrav1.KubexmMachineTemplateSpec{
			Template: infrav1.KubexmMachineTemplateResource{ObjectMeta: labels, Spec: infrav1.KubexmMachineSpec{
				HostName: "w1", HostSelector: &metav1.LabelSelector{MatchLabels: map[string]string{"rack": "1"}},
				Requirements: someCapacity(), Preferences: somePreferences(),
			}},
		}}, none},
	}
	w := worlds(nil)[0]
	all = append(all, subject{"template", &infrav1.KubexmClusterTemplate{ObjectMeta: meta, Spec: infrav1.KubexmClusterTemplateSpec{
		Template: infrav1.KubexmClusterTemplateResource{ObjectMeta: labels, Spec: w.infrastructure().object.(*infrav1.KubexmCluster).Spec},
	}}, none})
	for _, w := range worlds(nil) {
		config := &bootstrapv1.KubexmConfigTemplate{ObjectMeta: meta}
		config.Spec.Template.ObjectMeta = labels
		config.Spec.Template.Spec = *w.controlPlane.Spec.Node.DeepCopy()
		closeIn(w.name, &config.Spec.Template.Spec)
		own := w.controlPlane.Spec
		template := &controlplanev1.KubexmControlPlaneTemplate{ObjectMeta: meta}
		template.Spec.Template = controlplanev1.KubexmControlPlaneTemplateResource{ObjectMeta: labels}
		template.Spec.Template.Spec = controlplanev1.KubexmControlPlaneTemplateResourceSpec{
			MachineTemplate: controlplanev1.TemplateMachineTemplate{ObjectMeta: labels, Spec: controlplanev1.TemplateMachineTemplateSpec{
				Deletion: own.MachineTemplate.Spec.Deletion, Taints: own.MachineTemplate.Spec.Taints,
			}},
			ControlPlaneEndpoint: own.ControlPlaneEndpoint,
			Cluster:              own.Cluster, Node: own.Node, Rollout: own.Rollout,
			Remediation: own.Remediation, MachineNaming: own.MachineNaming,
		}
		all = append(all, subject{w.name, config, none}, subject{w.name, template, none})
	}
	return all
}
