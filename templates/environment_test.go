// Copyright 2026 The cluster-api-provider-kubexm Authors.
// SPDX-License-Identifier: Apache-2.0

//go:build envtest

package templates

import (
	"bufio"
	"context"
	"errors"
	"fmt"
	"io"
	"os"
	"os/exec"
	"path/filepath"
	"regexp"
	"strings"
	"testing"

	. "github.com/onsi/gomega"
	apiextensionsv1 "k8s.io/apiextensions-apiserver/pkg/apis/apiextensions/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime"
	utilyaml "k8s.io/apimachinery/pkg/util/yaml"
	runtimev1 "sigs.k8s.io/cluster-api/api/runtime/v1beta2"
	"sigs.k8s.io/cluster-api/controllers/clustercache"
	"sigs.k8s.io/cluster-api/core/reconcilers/clusterclass"
	topologycluster "sigs.k8s.io/cluster-api/core/reconcilers/topology/cluster"
	coreadmission "sigs.k8s.io/cluster-api/core/webhooks/admission"
	"sigs.k8s.io/cluster-api/feature"
	ctrl "sigs.k8s.io/controller-runtime"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/controller"
	"sigs.k8s.io/yaml"

	bootstrapsetup "github.com/mensylisir/cluster-api-provider-kubexm/bootstrap/setup"
	"github.com/mensylisir/cluster-api-provider-kubexm/config/crd"
	"github.com/mensylisir/cluster-api-provider-kubexm/config/webhook"
	controlplanesetup "github.com/mensylisir/cluster-api-provider-kubexm/controlplane/setup"
	"github.com/mensylisir/cluster-api-provider-kubexm/exp/embedded"
	infrasetup "github.com/mensylisir/cluster-api-provider-kubexm/exp/infrastructure/setup"
	"github.com/mensylisir/cluster-api-provider-kubexm/test/pairing/byoh"
	"github.com/mensylisir/cluster-api-provider-kubexm/test/pairing/dev"
	"github.com/mensylisir/cluster-api-provider-kubexm/test/pairing/kubeadm"
	"github.com/mensylisir/cluster-api-provider-kubexm/test/pairing/metal3"
)

const namespace = "fleet"

// api is a client of the one management cluster of this package's tests. It has Cluster API's own reconcilers, those of
// classes too, and everybody's webhooks; none of our reconcilers runs.
var api client.Client

func TestMain(m *testing.M) { os.Exit(run(m)) }

func run(m *testing.M) int {
	dir, err := os.MkdirTemp("", "kubexm-templates-")
	if err != nil {
		fmt.Fprintln(os.Stderr, err)
		return 1
	}
	defer os.RemoveAll(dir)
	plane, err := start(dir)
	if err != nil {
		fmt.Fprintln(os.Stderr, err)
		return 1
	}
	api = plane.Client()
	code := m.Run()
	if err := plane.Stop(context.Background()); err != nil {
		fmt.Fprintln(os.Stderr, err)
		return 1
	}
	return code
}

func start(dir string) (*embedded.Plane, error) {
	if err := feature.MutableGates.Set(string(feature.ClusterTopology) + "=true"); err != nil {
		return nil, err
	}
	definitions, err := crd.CRDs()
	if err != nil {
		return nil, err
	}
	for _, name := range []string{"cluster.x-k8s.io_clusterclasses", "runtime.cluster.x-k8s.io_extensionconfigs"} {
		definition, err := coreDefinition(name)
		if err != nil {
			return nil, err
		}
		definitions = append(definitions, definition)
	}
	for _, others := range []func() ([]*apiextensionsv1.CustomResourceDefinition, error){
		byoh.Definitions, metal3.Definitions,
		func() ([]*apiextensionsv1.CustomResourceDefinition, error) {
			return dev.Definitions(context.Background())
		},
		func() ([]*apiextensionsv1.CustomResourceDefinition, error) {
			return kubeadm.Definitions(context.Background(), kubeadm.Bootstrap)
		},
	} {
		kinds, err := others()
		if err != nil {
			return nil, err
		}
		definitions = append(definitions, kinds...)
	}
	hooks, err := webhook.All()
	if err != nil {
		return nil, err
	}
	assets := os.Getenv("KUBEBUILDER_ASSETS")
	return embedded.Start(context.Background(), embedded.Options{
		Dir:               dir,
		Etcd:              filepath.Join(assets, "etcd"),
		APIServer:         filepath.Join(assets, "kube-apiserver"),
		ControllerManager: filepath.Join(assets, "kube-controller-manager"),
		Namespace:         namespace,
		AddToScheme: []func(*runtime.Scheme) error{
			bootstrapsetup.AddToScheme, controlplanesetup.AddToScheme, infrasetup.AddToScheme, runtimev1.AddToScheme,
		},
		CRDs:               definitions,
		MutatingWebhooks:   hooks.Mutating,
		ValidatingWebhooks: hooks.Validating,
		Setup:              []func(context.Context, ctrl.Manager) error{setup},
	})
}

// setup adds what the core manager adds while its feature gate ClusterTopology is on, and our webhooks.
func setup(ctx context.Context, mgr ctrl.Manager) error {
	return errors.Join(
		(&clusterclass.Reconciler{Client: mgr.GetClient()}).SetupWithManager(ctx, mgr, controller.Options{}),
		(&topologycluster.Reconciler{
			Client: mgr.GetClient(), APIReader: mgr.GetAPIReader(), ClusterCache: clustercache.NewFakeEmptyClusterCache(),
		}).SetupWithManager(ctx, mgr, controller.Options{}),
		(&coreadmission.ClusterClass{Client: mgr.GetClient()}).SetupWebhookWithManager(mgr),
		bootstrapsetup.Webhooks(mgr), controlplanesetup.Webhooks(mgr), infrasetup.Webhooks(mgr),
	)
}

// coreDefinition is one that embedded planes go without, with the one version that is stored.
func coreDefinition(name string) (*apiextensionsv1.CustomResourceDefinition, error) {
	out, err := exec.CommandContext(context.Background(), "go", "list", "-m", "-f", "{{.Dir}}", "sigs.k8s.io/cluster-api").Output()
	if err != nil {
		return nil, err
	}
	content, err := os.ReadFile(filepath.Join(strings.TrimSpace(string(out)), "core/config/crd/bases", name+".yaml"))
	if err != nil {
		return nil, err
	}
	definition := &apiextensionsv1.CustomResourceDefinition{}
	if err := yaml.UnmarshalStrict(content, definition); err != nil {
		return nil, err
	}
	for _, version := range definition.Spec.Versions {
		if version.Storage {
			definition.Spec.Versions = []apiextensionsv1.CustomResourceDefinitionVersion{version}
			break
		}
	}
	return definition, nil
}

var variable = regexp.MustCompile(`\$\{([A-Z0-9_]+)(?::=([^}]*))?\}`)

// read returns the objects of a template, with values put in as clusterctl does.
func read(t *testing.T, path string, values map[string]string) []*unstructured.Unstructured {
	t.Helper()
	content, err := os.ReadFile(path)
	if err != nil {
		t.Fatal(err)
	}
	text := variable.ReplaceAllStringFunc(string(content), func(found string) string {
		parts := variable.FindStringSubmatch(found)
		if value, known := values[parts[1]]; known {
			return value
		}
		if parts[2] == "" {
			t.Errorf("%s: %s has no value", path, found)
		}
		return parts[2]
	})
	var all []*unstructured.Unstructured
	for documents := utilyaml.NewYAMLReader(bufio.NewReader(strings.NewReader(text))); ; {
		document, err := documents.Read()
		if errors.Is(err, io.EOF) {
			return all
		}
		object := &unstructured.Unstructured{}
		if err := errors.Join(err, yaml.UnmarshalStrict(document, &object.Object)); err != nil {
			t.Fatalf("%s: %v", path, err)
		}
		if strings.HasPrefix(path, "cluster/clusterclass") {
			object.SetNamespace(values["NAMESPACE"]) // as clusterctl does
		}
		all = append(all, object)
	}
}

// values are what a person gives for a cluster.
func values(name string) map[string]string {
	return map[string]string{
		"NAMESPACE": namespace, "CLUSTER_NAME": name, "KUBERNETES_VERSION": "v1.36.3",
		"CONTROL_PLANE_MACHINE_COUNT": "1", "WORKER_MACHINE_COUNT": "2",
	}
}

// create asks for every object strictly: an unknown field is an error.
func create(t *testing.T, objects []*unstructured.Unstructured, options ...client.CreateOption) {
	t.Helper()
	g := NewWithT(t)
	for _, object := range objects {
		err := api.Create(t.Context(), object, append(options, client.FieldValidation(metav1.FieldValidationStrict))...)
		g.Expect(err).NotTo(HaveOccurred(), "%s %s", object.GetKind(), object.GetName())
	}
}
