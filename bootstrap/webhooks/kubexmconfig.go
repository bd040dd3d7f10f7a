// Copyright 2026 The cluster-api-provider-kubexm Authors.
// SPDX-License-Identifier: Apache-2.0

package webhooks

import (
	"fmt"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/util/validation"
	"k8s.io/apimachinery/pkg/util/validation/field"

	bootstrapv1 "github.com/mensylisir/cluster-api-provider-kubexm/bootstrap/api/v1beta1"
	"github.com/mensylisir/cluster-api-provider-kubexm/internal/admission"
	"github.com/mensylisir/cluster-api-provider-kubexm/pkg/spec"
)

// +kubebuilder:webhook:verbs=create;update,path=/validate-bootstrap-cluster-x-k8s-io-v1beta1-kubexmconfig,mutating=false,failurePolicy=fail,groups=bootstrap.cluster.x-k8s.io,resources=kubexmconfigs,versions=v1beta1,name=validation.kubexmconfig.bootstrap.cluster.x-k8s.io,sideEffects=None,admissionReviewVersions=v1

var config = admission.Kind[*bootstrapv1.KubexmConfig]{
	GroupKind:      bootstrapv1.GroupVersion.WithKind("KubexmConfig").GroupKind(),
	Spec:           func(c *bootstrapv1.KubexmConfig) any { return c.Spec },
	Validate:       ValidateConfig,
	ValidateUpdate: ValidateConfigUpdate,
}

// +kubebuilder:webhook:verbs=create;update,path=/validate-bootstrap-cluster-x-k8s-io-v1beta1-kubexmconfigtemplate,mutating=false,failurePolicy=fail,groups=bootstrap.cluster.x-k8s.io,resources=kubexmconfigtemplates,versions=v1beta1,name=validation.kubexmconfigtemplate.bootstrap.cluster.x-k8s.io,sideEffects=None,admissionReviewVersions=v1

var configTemplate = admission.Kind[*bootstrapv1.KubexmConfigTemplate]{
	GroupKind: bootstrapv1.GroupVersion.WithKind("KubexmConfigTemplate").GroupKind(),
	Spec:      func(t *bootstrapv1.KubexmConfigTemplate) any { return t.Spec },
	Validate:  ValidateConfigTemplate,
	Template:  true,
}

// ValidateConfig checks a KubexmConfig. All of its spec but what it is for may be changed: the host follows.
func ValidateConfig(c *bootstrapv1.KubexmConfig) field.ErrorList {
	path := field.NewPath("spec")
	errs := c.Spec.ValidateRules(path)
	if ref, at := c.Spec.HostRef, path.Child("hostRef"); ref != (bootstrapv1.HostReference{}) {
		if len(validation.IsDNS1123Label(ref.Name)) > 0 {
			errs = append(errs, field.Invalid(at.Child("name"), ref.Name, "use the name of a KubexmHost in this namespace"))
		}
		if ref.Role.IsNode() || ref.Role == "" {
			errs = append(errs, field.NotSupported(at.Child("role"), ref.Role, []spec.Role{spec.RoleEtcd, spec.RoleLoadBalancer}))
		}
		if owner := metav1.GetControllerOf(c); owner == nil || owner.Kind != "KubexmControlPlane" {
			errs = append(errs, field.Forbidden(at, "hosts of etcd and of load balancers are chosen in a KubexmControlPlane (spec.cluster.etcd.hosts, "+
				"spec.cluster.loadBalancer.keepalived.hosts), which makes their KubexmConfigs"))
		}
		if c.Spec.Format != "" {
			errs = append(errs, field.Forbidden(path.Child("format"), "a host of the inventory runs no bootstrap data: remove it"))
		}
		errs = append(errs, validateNoNode(&c.Spec.Node, path)...)
	}
	return errs
}

// validateNoNode refuses what is of no use on a host that does not become a Node.
func validateNoNode(n *spec.Node, path *field.Path) field.ErrorList {
	var errs field.ErrorList
	for _, one := range []struct {
		at  *field.Path
		set bool
	}{
		{path.Child("kubelet"), n.Kubelet.MaxPods != 0 || n.Kubelet.PodPidsLimit != 0 || len(n.Kubelet.ExtraArgs) > 0},
		{path.Child("nodeLabels"), len(n.NodeLabels) > 0},
		{path.Child("nodeTaints"), len(n.NodeTaints) > 0},
		{path.Child("system", "swap"), n.System.Swap != ""},
	} {
		if one.set {
			errs = append(errs, field.Forbidden(one.at, "hosts of etcd and of load balancers become no Nodes, and have no kubelet: remove it"))
		}
	}
	return errs
}

// ValidateConfigUpdate refuses that a KubexmConfig becomes another host's, or that a host that has joined begins a cluster.
func ValidateConfigUpdate(old, updated *bootstrapv1.KubexmConfig) field.ErrorList {
	path := field.NewPath("spec")
	var errs field.ErrorList
	if was, is := old.Spec.BootstrapMode, updated.Spec.BootstrapMode; was != is {
		errs = append(errs, field.Invalid(path.Child("bootstrapMode"), is, fmt.Sprintf("cannot be changed once the host has initialized or joined: set it back to %q", was)))
	}
	if was, is := old.Spec.HostRef, updated.Spec.HostRef; was != is {
		errs = append(errs, field.Forbidden(path.Child("hostRef"), "a KubexmConfig stays with its host: delete it, and create another"))
	}
	if was, is := old.Spec.AccessPolicy, updated.Spec.AccessPolicy; was == spec.AccessClosed && is != was && old.IsClosed() {
		errs = append(errs, field.Forbidden(path.Child("accessPolicy"), "the access to the host is closed, and is not opened again: delete the "+
			"Machine to have it replaced by one that is open, or set it back to Closed"))
	}
	if was, is := old.Spec.Access.Connection.OrDefault(), updated.Spec.Access.Connection.OrDefault(); was != is {
		errs = append(errs, field.Forbidden(path.Child("access", "connection"), fmt.Sprintf(
			"the infrastructure reads the bootstrap data once: set it back to %s, or delete the Machine to have another", was)))
	}
	if was, is := old.Spec.Format.OrDefault(), updated.Spec.Format.OrDefault(); was != is {
		errs = append(errs, field.Forbidden(path.Child("format"), fmt.Sprintf(
			"the infrastructure reads the bootstrap data once: set it back to %s, or delete the Machine to have another", was)))
	}
	// Before a host was brought to a version, whatever keeps it from that may be taken off a list.
	if old.Status.KubernetesVersion != "" {
		errs = append(errs, spec.ValidateNodeUpdate(&old.Spec.Node, &updated.Spec.Node, path)...)
	}
	return errs
}

// ValidateConfigTemplate checks a KubexmConfigTemplate.
func ValidateConfigTemplate(t *bootstrapv1.KubexmConfigTemplate) field.ErrorList {
	path := field.NewPath("spec", "template")
	errs := t.Spec.Template.ObjectMeta.Validate(path.Child("metadata"))
	return append(errs, t.Spec.Template.Spec.ValidateTemplate(path.Child("spec"))...)
}
