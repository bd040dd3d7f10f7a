// Copyright 2026 The cluster-api-provider-kubexm Authors.
// SPDX-License-Identifier: Apache-2.0

package config_test

import (
	"encoding/json"
	"fmt"
	"os"
	"regexp"
	"slices"
	"strings"
	"testing"

	admissionregistrationv1 "k8s.io/api/admissionregistration/v1"
	appsv1 "k8s.io/api/apps/v1"
	corev1 "k8s.io/api/core/v1"
	networkingv1 "k8s.io/api/networking/v1"
	rbacv1 "k8s.io/api/rbac/v1"
	apiextensionsv1 "k8s.io/apiextensions-apiserver/pkg/apis/apiextensions/v1"
	"k8s.io/apimachinery/pkg/api/equality"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/labels"
	"k8s.io/utils/ptr"
	runtimev1 "sigs.k8s.io/cluster-api/api/runtime/v1beta2"
	"sigs.k8s.io/kustomize/api/krusty"
	"sigs.k8s.io/kustomize/api/resmap"
	"sigs.k8s.io/kustomize/kyaml/filesys"
	"sigs.k8s.io/yaml"
)

func build(t *testing.T, provider string) resmap.ResMap {
	t.Helper()
	all, err := krusty.MakeKustomizer(krusty.MakeDefaultOptions()).Run(filesys.MakeFsOnDisk(), provider)
	if err != nil {
		t.Fatalf("kustomize build config/%s: %v", provider, err)
	}
	return all
}

// each decodes the objects of one kind.
func each[T any](t *testing.T, all resmap.ResMap, kind string) []T {
	t.Helper()
	var found []T
	for _, resource := range all.Resources() {
		if resource.GetKind() != kind {
			continue
		}
		data, err := resource.MarshalJSON()
		if err != nil {
			t.Fatal(err)
		}
		var object T
		if err := json.Unmarshal(data, &object); err != nil {
			t.Fatal(err)
		}
		found = append(found, object)
	}
	return found
}

// aggregates reports whether the API server gives a role the rules of another.
func aggregates(t *testing.T, whole, part rbacv1.ClusterRole) bool {
	t.Helper()
	if whole.AggregationRule == nil {
		return false
	}
	return slices.ContainsFunc(whole.AggregationRule.ClusterRoleSelectors, func(s metav1.LabelSelector) bool {
		selector, err := metav1.LabelSelectorAsSelector(&s)
		if err != nil {
			t.Fatal(err)
		}
		return selector.Matches(labels.Set(part.Labels))
	})
}

// The components are as clusterctl's contract wants them, and what they are made of finds each other.
func TestComponents(t *testing.T) {
	for directory, provider := range map[string]string{"bootstrap": "bootstrap", "controlplane": "control-plane", "infrastructure": "infrastructure"} {
		t.Run(directory, func(t *testing.T) {
			all := build(t, directory)
			prefix := "kubexm-" + provider + "-"
			namespace := prefix + "system"
			for _, resource := range all.Resources() {
				if got := resource.GetLabels()["cluster.x-k8s.io/provider"]; got != provider+"-kubexm" {
					t.Errorf("%s %s is labelled as a part of the provider %q", resource.GetKind(), resource.GetName(), got)
				}
				if in := resource.GetNamespace(); in != "" && in != namespace {
					t.Errorf("%s %s is in the namespace %s", resource.GetKind(), resource.GetName(), in)
				}
			}
			type object struct {
				Metadata struct{ Name string }
				Spec     struct {
					DNSNames   []string
					SecretName string
				}
				RoleRef  struct{ Name string }
				Subjects []struct{ Name, Namespace string }
			}
			if namespaces := each[object](t, all, "Namespace"); len(namespaces) != 1 || namespaces[0].Metadata.Name != namespace {
				t.Errorf("clusterctl wants one Namespace, %s: %v", namespace, namespaces)
			}

			deployments := each[appsv1.Deployment](t, all, "Deployment")
			if len(deployments) != 1 {
				t.Fatalf("there are %d Deployments", len(deployments))
			}
			pod := deployments[0].Spec.Template.Spec
			if manager := pod.Containers[0]; manager.Name != "manager" || !slices.Contains(manager.Args, "--providers="+provider) {
				t.Errorf("the container %s is started with %v", manager.Name, manager.Args)
			}
			volumes := map[string]corev1.Volume{}
			for _, volume := range pod.Volumes {
				volumes[volume.Name] = volume
			}
			if got, want := volumes["cert"].Secret.SecretName, each[object](t, all, "Certificate")[0].Spec.SecretName; got != want {
				t.Errorf("the manager's certificate is in the Secret %s, and read from %s", want, got)
			}
			_, bundles := volumes["bundles"]
			if carries := provider == "bootstrap"; bundles != carries || slices.Contains(pod.Containers[0].Args, "--bundle=/bundles") != carries {
				t.Errorf("the bootstrap provider alone has bundles: %v, %v", pod.Volumes, pod.Containers[0].Args)
			}
			hostLogs := corev1.EnvVar{Name: "KUBEXM_HOST_LOGS_DIR", Value: "/host-logs/kept"}
			if keeps := provider == "bootstrap"; slices.Contains(pod.Containers[0].Env, hostLogs) != keeps ||
				(volumes["host-logs"].EmptyDir != nil) != keeps {
				t.Errorf("the bootstrap provider alone keeps hosts' logs: %v, %v", pod.Volumes, pod.Containers[0].Env)
			}
			service := each[object](t, all, "Service")[0].Metadata.Name
			if got, want := each[object](t, all, "Certificate")[0].Spec.DNSNames[0], service+"."+namespace+".svc"; got != want {
				t.Errorf("the certificate is for %s, and the Service is %s", got, want)
			}
			bound := []string{}
			for _, binding := range each[object](t, all, "ClusterRoleBinding") {
				bound = append(bound, binding.RoleRef.Name)
				if to := binding.Subjects[0]; to.Name != pod.ServiceAccountName || to.Namespace != namespace {
					t.Errorf("%s is bound to %v, and the manager is %s", binding.RoleRef.Name, to, pod.ServiceAccountName)
				}
			}
			roles := each[rbacv1.ClusterRole](t, all, "ClusterRole")
			for _, role := range roles {
				isPart := slices.ContainsFunc(roles, func(whole rbacv1.ClusterRole) bool {
					return slices.Contains(bound, whole.Name) && aggregates(t, whole, role)
				})
				if !isPart && !slices.Contains(bound, role.Name) {
					t.Errorf("nobody has the role %s", role.Name)
				}
			}

			hooks := each[admissionregistrationv1.ValidatingWebhookConfiguration](t, all, "ValidatingWebhookConfiguration")[0]
			if got, want := hooks.Annotations["cert-manager.io/inject-ca-from"], namespace+"/"+prefix+"serving-cert"; got != want {
				t.Errorf("the webhooks trust the certificate %s, not %s", got, want)
			}
			validated := []string{}
			for _, hook := range hooks.Webhooks {
				if hook.ClientConfig.Service.Name != service || hook.ClientConfig.Service.Namespace != namespace {
					t.Errorf("the webhook %s is asked at %v, not at %s", hook.Name, hook.ClientConfig.Service, service)
				}
				validated = append(validated, hook.Rules[0].Resources...)
			}
			for _, def := range each[apiextensionsv1.CustomResourceDefinition](t, all, "CustomResourceDefinition") {
				if def.Labels["cluster.x-k8s.io/v1beta2"] != def.Spec.Versions[0].Name {
					t.Errorf("%s does not say that it follows the contract v1beta2", def.Name)
				}
				if !slices.Contains(validated, def.Spec.Names.Plural) {
					t.Errorf("%s is not validated", def.Name)
				}
				if want := fmt.Sprintf("%s.cluster.x-k8s.io", strings.ReplaceAll(provider, "-", "")); def.Spec.Group != want {
					t.Errorf("%s is not of %s", def.Name, want)
				}
			}
		})
	}
}

// Cluster API finds the hooks where the bootstrap provider serves them, and trusts the certificate that it has.
func TestRuntimeExtension(t *testing.T) {
	all := build(t, "bootstrap")
	data, err := os.ReadFile("runtimeextension/extensionconfig.yaml")
	if err != nil {
		t.Fatal(err)
	}
	extension := &runtimev1.ExtensionConfig{}
	if err := yaml.UnmarshalStrict(data, extension); err != nil {
		t.Fatal(err)
	}
	asked, service := extension.Spec.ClientConfig.Service, each[corev1.Service](t, all, "Service")[0]
	if asked.Name != service.Name || asked.Namespace != service.Namespace {
		t.Errorf("it is asked for at %s/%s, and the Service is %s/%s", asked.Namespace, asked.Name, service.Namespace, service.Name)
	}
	if !slices.ContainsFunc(service.Spec.Ports, func(p corev1.ServicePort) bool {
		return p.Port == ptr.Deref(asked.Port, 443) && p.Name == "hooks"
	}) {
		t.Errorf("it is asked for at the port %d, and the Service has %v", ptr.Deref(asked.Port, 443), service.Spec.Ports)
	}
	deployment := each[appsv1.Deployment](t, all, "Deployment")[0]
	volumes := deployment.Spec.Template.Spec.Volumes
	cert := slices.IndexFunc(volumes, func(v corev1.Volume) bool { return v.Name == "cert" })
	if cert < 0 {
		t.Fatalf("the manager has no certificate: %v", volumes)
	}
	certificate := deployment.Namespace + "/" + volumes[cert].Secret.SecretName
	if got := extension.Annotations[runtimev1.InjectCAFromSecretAnnotation]; got != certificate {
		t.Errorf("the certificate of %s is trusted, and the manager has that of %s", got, certificate)
	}
	if args := deployment.Spec.Template.Spec.Containers[0].Args; !slices.Contains(args, "--runtime-extension-port=${KUBEXM_RUNTIME_EXTENSION_PORT:=0}") {
		t.Errorf("the manager is not told whether to serve hooks: %v", args)
	}
}

// What a person may set with clusterctl has a default, so that nobody must.
func TestVariables(t *testing.T) {
	anyVariable := regexp.MustCompile(`\$\{([A-Z_]+)([^}]*)\}`)
	for directory, want := range map[string][]string{
		"bootstrap": {"CAPI_DIAGNOSTICS_ADDRESS", "CAPI_INSECURE_DIAGNOSTICS", "KUBEXM_BUNDLES_CLAIM",
			"KUBEXM_BUNDLE_VERIFY_KEY", "KUBEXM_CALL_HOME_ADDRESS",
			"KUBEXM_RUNTIME_EXTENSION_CLIENT_CA_FILE", "KUBEXM_RUNTIME_EXTENSION_PORT"},
		"controlplane":   {"CAPI_DIAGNOSTICS_ADDRESS", "CAPI_INSECURE_DIAGNOSTICS", "EXP_MACHINE_TAINT_PROPAGATION"},
		"infrastructure": {"CAPI_DIAGNOSTICS_ADDRESS", "CAPI_INSECURE_DIAGNOSTICS"},
	} {
		t.Run(directory, func(t *testing.T) {
			content, err := build(t, directory).AsYaml()
			if err != nil {
				t.Fatal(err)
			}
			var got []string
			for _, found := range anyVariable.FindAllStringSubmatch(string(content), -1) {
				got = append(got, found[1])
				if !strings.HasPrefix(found[2], ":=") {
					t.Errorf("%s has no default", found[1])
				}
			}
			slices.Sort(got)
			if !slices.Equal(got, want) {
				t.Errorf("the variables are %v, not %v", got, want)
			}
		})
	}
}

// A manager takes no more than its share of a Node's memory, and is reached at the ports that it serves and at no other.
func TestManagersAreBounded(t *testing.T) {
	for _, directory := range []string{"bootstrap", "controlplane", "infrastructure"} {
		t.Run(directory, func(t *testing.T) {
			all := build(t, directory)
			deployment := each[appsv1.Deployment](t, all, "Deployment")[0]
			manager := deployment.Spec.Template.Spec.Containers[0]
			if limit := manager.Resources.Limits.Memory(); limit.IsZero() {
				t.Error("the manager's memory has no limit")
			}
			policies := each[networkingv1.NetworkPolicy](t, all, "NetworkPolicy")
			if len(policies) != 1 || policies[0].Namespace != deployment.Namespace {
				t.Fatalf("there are the policies %v", policies)
			}
			policy := policies[0].Spec
			selector, err := metav1.LabelSelectorAsSelector(&policy.PodSelector)
			if err != nil || !selector.Matches(labels.Set(deployment.Spec.Template.Labels)) {
				t.Errorf("the policy is for %v, %v", policy.PodSelector, err)
			}
			if !slices.Equal(policy.PolicyTypes, []networkingv1.PolicyType{networkingv1.PolicyTypeIngress}) {
				t.Errorf("the policy is about %v", policy.PolicyTypes)
			}
			served := map[string]bool{}
			for _, port := range manager.Ports {
				served[port.Name] = true
			}
			open, hooks := []string{}, 0
			for _, rule := range policy.Ingress {
				for _, port := range rule.Ports {
					switch {
					case port.Port.StrVal != "":
						open = append(open, port.Port.StrVal)
						if !served[port.Port.StrVal] {
							t.Errorf("the manager has no port %s", port.Port.StrVal)
						}
					case port.Port.IntVal == 9444 && len(rule.From) == 1 && rule.From[0].NamespaceSelector.MatchLabels["cluster.x-k8s.io/provider"] == "cluster-api":
						hooks++
					default:
						t.Errorf("the port %v is open to %v", port.Port, rule.From)
					}
				}
			}
			slices.Sort(open)
			if want := []string{"healthz", "metrics", "webhook-server"}; !slices.Equal(open, want) {
				t.Errorf("open are %v, not %v", open, want)
			}
			if want := map[string]int{"bootstrap": 1}[directory]; hooks != want {
				t.Errorf("Cluster API reaches hooks by %d rules, not %d", hooks, want)
			}
		})
	}
}

// The verbs on Secrets are those that are used.
func TestSecretsRights(t *testing.T) {
	for directory, want := range map[string][]string{
		"bootstrap": {"create", "delete", "get", "list", "patch", "watch"}, "controlplane": {"create", "get", "patch"}, "infrastructure": nil,
	} {
		var got []string
		for _, role := range each[rbacv1.ClusterRole](t, build(t, directory), "ClusterRole") {
			for _, rule := range role.Rules {
				if slices.Contains(rule.Resources, "secrets") {
					got = append(got, rule.Verbs...)
				}
			}
		}
		slices.Sort(got)
		if !slices.Equal(got, want) {
			t.Errorf("%s: %v, not %v", directory, got, want)
		}
	}
}

// A manager of one namespace has rights in that one, and in none but its own besides.
func TestNamespaced(t *testing.T) {
	for _, directory := range []string{"bootstrap", "controlplane", "infrastructure"} {
		t.Run(directory, func(t *testing.T) {
			all := build(t, "namespaced/"+directory)
			everywhere := map[string]bool{}
			for _, binding := range each[rbacv1.ClusterRoleBinding](t, all, "ClusterRoleBinding") {
				everywhere[binding.RoleRef.Name] = true
			}
			for _, role := range each[rbacv1.ClusterRole](t, all, "ClusterRole") {
				if !everywhere[role.Name] {
					continue // it gives nothing but where a RoleBinding names it, or one that it is a part of
				}
				if role.AggregationRule != nil {
					t.Errorf("%s has what others add to it in all namespaces", role.Name)
				}
				for _, rule := range role.Rules {
					for _, group := range rule.APIGroups {
						if !slices.Contains([]string{"apiextensions.k8s.io", "authentication.k8s.io", "authorization.k8s.io"}, group) {
							t.Errorf("%s has rights in all namespaces: %v", role.Name, rule)
						}
					}
				}
			}
			whole := map[string][]rbacv1.PolicyRule{}
			for _, role := range each[rbacv1.ClusterRole](t, build(t, directory), "ClusterRole") {
				whole[role.Name] = role.Rules
			}
			deployment := each[appsv1.Deployment](t, all, "Deployment")[0]
			if args := deployment.Spec.Template.Spec.Containers[0].Args; !slices.Contains(args, "--namespace=${KUBEXM_NAMESPACE}") {
				t.Errorf("the manager is started with %v", args)
			}
			bound := false
			for _, role := range each[rbacv1.Role](t, all, "Role") {
				if role.Namespace != "${KUBEXM_NAMESPACE}" {
					continue
				}
				if !equality.Semantic.DeepEqual(role.Rules, whole[role.Name]) {
					t.Errorf("%s has other rights than in all namespaces: %v", role.Name, role.Rules)
				}
				for _, binding := range each[rbacv1.RoleBinding](t, all, "RoleBinding") {
					bound = bound || binding.Namespace == role.Namespace && binding.RoleRef.Kind == "Role" && binding.RoleRef.Name == role.Name &&
						binding.Subjects[0].Name == deployment.Spec.Template.Spec.ServiceAccountName &&
						binding.Subjects[0].Namespace == deployment.Namespace
				}
			}
			if !bound {
				t.Error("the manager has no role in the namespace")
			}
		})
	}
}

// The manager reads what other infrastructure providers bring, and writes nothing of it but what wakes one up; in one namespace alone if it
// works in one. Whoever pairs it with one more adds a role.
func TestInfrastructureProviders(t *testing.T) {
	all := build(t, "bootstrap")
	roles := each[rbacv1.ClusterRole](t, all, "ClusterRole")
	at := slices.IndexFunc(roles, func(r rbacv1.ClusterRole) bool { return r.AggregationRule != nil })
	if at < 0 {
		t.Fatal("no role is made of others")
	}
	whole, got := roles[at], map[string][]string{}
	for _, part := range roles {
		if !aggregates(t, whole, part) {
			continue
		}
		for _, rule := range part.Rules {
			for _, resource := range rule.Resources {
				got[resource+"."+rule.APIGroups[0]] = rule.Verbs
			}
		}
	}
	read := []string{"get", "list", "watch"}
	want := map[string][]string{
		"byohosts.infrastructure.cluster.x-k8s.io": read, "byomachines.infrastructure.cluster.x-k8s.io": {"get", "list", "watch", "patch"},
		"metal3machines.infrastructure.cluster.x-k8s.io": read, "metal3datas.infrastructure.cluster.x-k8s.io": read, "baremetalhosts.metal3.io": read,
		"ipclaims.ipam.metal3.io": read, "ipaddresses.ipam.metal3.io": read,
		"ipaddressclaims.ipam.cluster.x-k8s.io": read, "ipaddresses.ipam.cluster.x-k8s.io": read,
	}
	if !equality.Semantic.DeepEqual(got, want) {
		t.Errorf("the rights are %v, not %v", got, want)
	}
	isBound := func(ref rbacv1.RoleRef) bool { return ref.Kind == "ClusterRole" && ref.Name == whole.Name }
	manager := each[appsv1.Deployment](t, all, "Deployment")[0].Spec.Template.Spec.ServiceAccountName
	if !slices.ContainsFunc(each[rbacv1.ClusterRoleBinding](t, all, "ClusterRoleBinding"), func(b rbacv1.ClusterRoleBinding) bool {
		return isBound(b.RoleRef) && b.Subjects[0].Name == manager
	}) {
		t.Errorf("the manager does not have the role %s", whole.Name)
	}
	if !slices.ContainsFunc(each[rbacv1.RoleBinding](t, build(t, "namespaced/bootstrap"), "RoleBinding"), func(b rbacv1.RoleBinding) bool {
		return isBound(b.RoleRef) && b.Namespace == "${KUBEXM_NAMESPACE}" && b.Subjects[0].Name == manager
	}) {
		t.Errorf("the manager of one namespace does not have the role %s there", whole.Name)
	}
}
