// Copyright 2026 The cluster-api-provider-kubexm Authors.
// SPDX-License-Identifier: Apache-2.0

package webhooks

import (
	"fmt"
	"net/netip"
	"strings"

	"k8s.io/apimachinery/pkg/util/validation/field"
	"k8s.io/utils/ptr"
	clusterv1 "sigs.k8s.io/cluster-api/api/core/v1beta2"

	bootstrapv1 "github.com/mensylisir/cluster-api-provider-kubexm/bootstrap/api/v1beta1"
	controlplanev1 "github.com/mensylisir/cluster-api-provider-kubexm/controlplane/api/v1beta1"
	"github.com/mensylisir/cluster-api-provider-kubexm/internal/admission"
	"github.com/mensylisir/cluster-api-provider-kubexm/pkg/spec"
)

// +kubebuilder:webhook:verbs=create;update,path=/mutate-controlplane-cluster-x-k8s-io-v1beta1-kubexmcontrolplane,mutating=true,failurePolicy=fail,groups=controlplane.cluster.x-k8s.io,resources=kubexmcontrolplanes,versions=v1beta1,name=default.kubexmcontrolplane.controlplane.cluster.x-k8s.io,sideEffects=None,admissionReviewVersions=v1
// +kubebuilder:webhook:verbs=create;update,path=/validate-controlplane-cluster-x-k8s-io-v1beta1-kubexmcontrolplane,mutating=false,failurePolicy=fail,groups=controlplane.cluster.x-k8s.io,resources=kubexmcontrolplanes,versions=v1beta1,name=validation.kubexmcontrolplane.controlplane.cluster.x-k8s.io,sideEffects=None,admissionReviewVersions=v1

var controlPlane = admission.Kind[*controlplanev1.KubexmControlPlane]{
	GroupKind:      controlplanev1.GroupVersion.WithKind("KubexmControlPlane").GroupKind(),
	Spec:           func(c *controlplanev1.KubexmControlPlane) any { return c.Spec },
	Default:        DefaultControlPlane,
	Validate:       ValidateControlPlane,
	ValidateUpdate: ValidateControlPlaneUpdate,
}

// DefaultControlPlane fills replicas, and writes the version as Cluster API compares it, with a v. The defaults of
// spec.cluster and spec.node are not written: some of them follow from the Cluster, which is not known here. But who runs
// etcd is, and whether Secrets are encrypted, when the object is created: hosts could not follow another default. Where an object is made
// again of one that has begun, by a move or from a backup, unset means that they are not encrypted.
func DefaultControlPlane(c *controlplanev1.KubexmControlPlane) {
	if c.Spec.Replicas == nil {
		c.Spec.Replicas = ptr.To[int32](1)
	}
	if c.Spec.Version != "" && !strings.HasPrefix(c.Spec.Version, "v") {
		c.Spec.Version = "v" + c.Spec.Version
	}
	if c.UID == "" { // it is created now
		shared := c.Spec.Cluster.DeepCopy()
		shared.Default()
		c.Spec.Cluster.Etcd.Type = shared.Etcd.Type
		if c.Annotations[controlplanev1.AuthoritiesAnnotation] == "" {
			c.Spec.Cluster.Kubernetes.EncryptByDefault()
		}
	}
}

// ValidateControlPlane checks a KubexmControlPlane by itself. Values that the Cluster object says instead are checked
// as if it said nothing.
func ValidateControlPlane(c *controlplanev1.KubexmControlPlane) field.ErrorList {
	path := field.NewPath("spec")
	var errs field.ErrorList
	errs = append(errs, validateReplicas(ptr.Deref(c.Spec.Replicas, 1), &c.Spec.Cluster, path)...)
	errs = append(errs, spec.ValidateVersion(c.Spec.Version, path.Child("version"))...)
	machines := path.Child("machineTemplate")
	errs = append(errs, c.Spec.MachineTemplate.ObjectMeta.Validate(machines.Child("metadata"))...)
	errs = append(errs, validateTaints(c.Spec.MachineTemplate.Spec.Taints, machines.Child("spec", "taints"))...)
	errs = append(errs, validateGates(c.Spec.MachineTemplate.Spec.ReadinessGates, &c.Spec.Cluster, machines.Child("spec", "readinessGates"))...)
	errs = append(errs, validateRollout(&c.Spec.Rollout, ptr.To(ptr.Deref(c.Spec.Replicas, 1)), &c.Spec.Cluster, path.Child("rollout"))...)
	errs = append(errs, validateNaming(c.Spec.MachineNaming, path.Child("machineNaming"))...)
	errs = append(errs, validateEndpoint(c.Spec.ControlPlaneEndpoint, &c.Spec.Cluster, path)...)
	return append(errs, validateHosts(c.Spec.ControlPlaneEndpoint, &c.Spec.Cluster, &c.Spec.Node, path)...)
}

// ValidateControlPlaneUpdate refuses the changes that a running cluster cannot follow.
func ValidateControlPlaneUpdate(old, updated *controlplanev1.KubexmControlPlane) field.ErrorList {
	path := field.NewPath("spec")
	var errs field.ErrorList
	// Before there is a cluster, nothing is lost by another version.
	if ptr.Deref(old.Status.Initialization.ControlPlaneInitialized, false) {
		errs = append(errs, validateVersionChange(old.Spec.Version, updated.Spec.Version, old.Status.Versions, path.Child("version"))...)
		if len(errs) == 0 {
			errs = append(errs, validateReplaceable(old, updated, path)...)
		}
		errs = append(errs, spec.ValidateNodeUpdate(&old.Spec.Node.Node, &updated.Spec.Node.Node, path.Child("node"))...)
		errs = append(errs, spec.ValidateSharedUpdate(&old.Spec.Cluster, &updated.Spec.Cluster, path.Child("cluster"))...)
	}
	if was, is := old.Spec.Node.Access.Connection.OrDefault(), updated.Spec.Node.Access.Connection.OrDefault(); was != is {
		errs = append(errs, field.Forbidden(path.Child("node", "access", "connection"), fmt.Sprintf(
			"hosts read their bootstrap data once, and this is part of it: set it back to %s", was)))
	}
	return append(errs, spec.ValidateUpdate(
		&old.Spec.Cluster, &updated.Spec.Cluster, ptr.Deref(old.Spec.Replicas, 1), path.Child("cluster"))...)
}

// maxStacked are the most control plane Machines that etcd may run on.
const maxStacked = 9

// validateReplicas checks how many Machines there are to be, given what runs on them.
func validateReplicas(replicas int32, cluster *spec.Cluster, path *field.Path) field.ErrorList {
	cluster = cluster.DeepCopy()
	cluster.Default()
	at := path.Child("replicas")
	switch {
	case replicas < 1:
		return field.ErrorList{field.Invalid(at, replicas, "a cluster needs at least one control plane Machine: use 1, 3 or 5")}
	case replicas > maxStacked && cluster.Etcd.IsStacked():
		return field.ErrorList{field.Invalid(at, replicas, fmt.Sprintf(
			"etcd runs on these Machines, and is slow with more than %d members: use at most %d, or etcd elsewhere", maxStacked, maxStacked))}
	case replicas%2 == 0 && cluster.Etcd.IsStacked():
		return field.ErrorList{field.Invalid(at, replicas, fmt.Sprintf(
			"etcd runs on these Machines, and an even number of members survives no more failures than one less: use %d or %d", replicas-1, replicas+1))}
	case replicas > 1 && !cluster.LoadBalancer.IsPresent():
		return field.ErrorList{field.Required(path.Child("cluster", "loadBalancer", "type"), fmt.Sprintf(
			"%d control plane Machines need a load balancer, or all others depend on the first one: set another type than None", replicas))}
	}
	return nil
}

// maxGates are the most readiness gates that a Machine may have. Of them, ownGates are for components of its control plane, and etcdGates
// for etcd where that runs on it.
const maxGates, ownGates, etcdGates = 32, 3, 2

// validateGates checks that a Machine has room for the gates that are its control plane's.
func validateGates(gates []clusterv1.MachineReadinessGate, cluster *spec.Cluster, path *field.Path) field.ErrorList {
	cluster = cluster.DeepCopy()
	cluster.Default()
	ours := ownGates
	if cluster.Etcd.IsStacked() {
		ours += etcdGates
	}
	if len(gates)+ours <= maxGates {
		return nil
	}
	return field.ErrorList{field.Invalid(path, len(gates), fmt.Sprintf(
		"a Machine has %d readiness gates at most, and %d of them are its control plane's: use at most %d", maxGates, ours, maxGates-ours))}
}

// validateEndpoint checks that what the endpoint is, is written once.
func validateEndpoint(at clusterv1.APIEndpoint, cluster *spec.Cluster, path *field.Path) field.ErrorList {
	var errs field.ErrorList
	own, within := path.Child("controlPlaneEndpoint"), path.Child("cluster", "controlPlaneEndpoint")
	if (at.Host == "") != (at.Port == 0) {
		errs = append(errs, field.Required(own, "give host and port, or neither"))
	}
	if cluster.ControlPlaneEndpoint.Port != 0 {
		errs = append(errs, field.Forbidden(within.Child("port"), fmt.Sprintf("the port is %s: remove it", own.Child("port"))))
	}
	_, notIP := netip.ParseAddr(at.Host)
	switch {
	case at.Host == "" && cluster.ControlPlaneEndpoint.Address != "" && cluster.ControlPlaneEndpoint.Domain == "":
		errs = append(errs, field.Forbidden(within.Child("address"), fmt.Sprintf("without a name the address is %s: move it there", own.Child("host"))))
	case at.Host != "" && notIP == nil && cluster.ControlPlaneEndpoint.Address != "":
		errs = append(errs, field.Forbidden(within.Child("address"), fmt.Sprintf("the address is %s: remove it", own.Child("host"))))
	case at.Host != "" && notIP != nil && cluster.ControlPlaneEndpoint.Domain != "":
		errs = append(errs, field.Forbidden(within.Child("domain"), fmt.Sprintf("the name is %s: remove it", own.Child("host"))))
	}
	return errs
}

// moveErrors has errors of what comes from spec.controlPlaneEndpoint, or belongs there, name that field.
func moveErrors(errs field.ErrorList, at clusterv1.APIEndpoint, cluster *spec.Cluster, path *field.Path) {
	within, own := path.Child("cluster", "controlPlaneEndpoint"), path.Child("controlPlaneEndpoint")
	for _, err := range errs {
		switch {
		case err.Field == within.Child("port").String():
			err.Field = own.Child("port").String()
		case err.Field == within.Child("address").String() &&
			(cluster.ControlPlaneEndpoint.Domain == "" || cluster.ControlPlaneEndpoint.Address == at.Host),
			err.Field == within.Child("domain").String() && cluster.ControlPlaneEndpoint.Domain == at.Host && at.Host != "":
			err.Field = own.Child("host").String()
		}
	}
}

// validateHosts checks what all hosts share and what the control plane's own are, as if they had their defaults.
func validateHosts(
	at clusterv1.APIEndpoint, cluster *spec.Cluster, node *bootstrapv1.KubexmConfigSpec, path *field.Path,
) field.ErrorList {
	cluster = cluster.DeepCopy()
	cluster.ControlPlaneEndpoint.Lay(at.Host, at.Port)
	cluster.Default()
	errs := cluster.ValidateRules(path.Child("cluster"))
	moveErrors(errs, at, cluster, path)
	if node.AccessPolicy != "" {
		errs = append(errs, field.Forbidden(path.Child("node", "accessPolicy"), "hosts of the control plane stay open, because they are entered when "+
			"members leave, certificates are renewed and etcd is saved: remove it. It is for workers (KubexmConfigTemplates)"))
	}
	return append(errs, node.ValidateTemplate(path.Child("node"))...)
}
