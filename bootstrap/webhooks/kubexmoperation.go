// Copyright 2026 The cluster-api-provider-kubexm Authors.
// SPDX-License-Identifier: Apache-2.0

package webhooks

import (
	"net/url"
	"path"
	"slices"
	"strings"
	"unicode"

	"k8s.io/apimachinery/pkg/api/equality"
	apivalidation "k8s.io/apimachinery/pkg/api/validation"
	"k8s.io/apimachinery/pkg/util/validation/field"
	"k8s.io/utils/ptr"

	bootstrapv1 "github.com/mensylisir/cluster-api-provider-kubexm/bootstrap/api/v1beta1"
	"github.com/mensylisir/cluster-api-provider-kubexm/internal/admission"
	"github.com/mensylisir/cluster-api-provider-kubexm/pkg/spec"
)

// +kubebuilder:webhook:verbs=create;update,path=/validate-bootstrap-cluster-x-k8s-io-v1beta1-kubexmoperation,mutating=false,failurePolicy=fail,groups=bootstrap.cluster.x-k8s.io,resources=kubexmoperations,versions=v1beta1,name=validation.kubexmoperation.bootstrap.cluster.x-k8s.io,sideEffects=None,admissionReviewVersions=v1

var operation = admission.Kind[*bootstrapv1.KubexmOperation]{
	GroupKind:      bootstrapv1.GroupVersion.WithKind("KubexmOperation").GroupKind(),
	Spec:           func(o *bootstrapv1.KubexmOperation) any { return o.Spec },
	Validate:       ValidateOperation,
	ValidateUpdate: ValidateOperationUpdate,
}

// ValidateOperation checks of a KubexmOperation what its schema does not.
func ValidateOperation(o *bootstrapv1.KubexmOperation) field.ErrorList {
	var errs field.ErrorList
	path := field.NewPath("spec")
	name := path.Child("target", "name")
	for _, why := range apivalidation.NameIsDNSSubdomain(o.Spec.Target.Name, false) {
		errs = append(errs, field.Invalid(name, o.Spec.Target.Name, why))
	}
	errs = append(errs, validateRestore(&o.Spec, path)...)
	components := path.Child("components")
	switch restarts := o.Spec.Type == bootstrapv1.RestartType; {
	case restarts && len(o.Spec.Components) == 0:
		errs = append(errs, field.Required(components, "name what is restarted: "+spec.JoinComponents(spec.Components)))
	case !restarts && len(o.Spec.Components) > 0:
		errs = append(errs, field.Forbidden(components, "of the type "+string(bootstrapv1.RestartType)+" alone"))
	}
	if o.Spec.Type != bootstrapv1.RenewCertificatesType && len(o.Spec.Certificates) > 0 {
		errs = append(errs, field.Forbidden(path.Child("certificates"), "of the type "+string(bootstrapv1.RenewCertificatesType)+" alone"))
	}
	return errs
}

// validateRestore checks what etcd is restored from. Where that lies is found out when it is read.
func validateRestore(s *bootstrapv1.KubexmOperationSpec, path *field.Path) field.ErrorList {
	at, from := path.Child("restoreEtcd"), &s.RestoreEtcd.Snapshot
	switch restores := s.Type == bootstrapv1.RestoreEtcdType; {
	case !restores && s.RestoreEtcd == (bootstrapv1.EtcdRestore{}):
		return nil
	case !restores:
		return field.ErrorList{field.Forbidden(at, "of the type "+string(bootstrapv1.RestoreEtcdType)+" alone")}
	}
	var errs field.ErrorList
	if kind := s.Target.Kind; kind != bootstrapv1.ClusterTarget {
		errs = append(errs, field.Invalid(path.Child("target", "kind"), kind, "etcd is restored on all hosts of a Cluster at once: Cluster"))
	}
	if s.MaxConcurrent != nil {
		errs = append(errs, field.Forbidden(path.Child("maxConcurrent"), "etcd is restored on all hosts at once"))
	}
	if loss := ptr.Deref(s.RestoreEtcd.AcceptedLossSeconds, 0); loss < 1 {
		errs = append(errs, field.Required(at.Child("acceptedLossSeconds"),
			"say how old the snapshot may be at most: all that was written to the cluster since it was saved is lost"))
	}
	if name := s.RestoreEtcd.OfCluster; name != "" {
		for _, why := range apivalidation.NameIsDNSSubdomain(name, false) {
			errs = append(errs, field.Invalid(at.Child("ofCluster"), name, why))
		}
	}
	at = at.Child("snapshot")
	onHost, inBucket := from.Host != (bootstrapv1.EtcdSnapshotOnHost{}), from.Bucket != (bootstrapv1.EtcdSnapshotInBucket{})
	switch {
	case onHost && inBucket:
		return append(errs, field.Forbidden(at.Child("bucket"), "the snapshot is either on a host or in a bucket"))
	case inBucket:
		return append(errs, validateBucket(&from.Bucket, at.Child("bucket"))...)
	case onHost:
		return append(errs, validateOnHost(&from.Host, at.Child("host"))...)
	}
	return append(errs, field.Required(at, "name the host or the bucket that has the snapshot"))
}

func validateOnHost(from *bootstrapv1.EtcdSnapshotOnHost, at *field.Path) field.ErrorList {
	var errs field.ErrorList
	for _, why := range apivalidation.NameIsDNSSubdomain(from.Name, false) {
		errs = append(errs, field.Invalid(at.Child("name"), from.Name, why))
	}
	if p := from.Path; !path.IsAbs(p) || path.Clean(p) != p || !strings.HasSuffix(p, ".db") || strings.ContainsFunc(p, unicode.IsControl) {
		errs = append(errs, field.Invalid(at.Child("path"), p, "it is no absolute path of a file with the ending .db"))
	}
	return errs
}

func validateBucket(from *bootstrapv1.EtcdSnapshotInBucket, at *field.Path) field.ErrorList {
	var errs field.ErrorList
	place, err := url.Parse(from.Location)
	if err != nil || place.Scheme != "s3" || place.Host == "" || place.User != nil || place.RawQuery != "" || place.Fragment != "" ||
		strings.Trim(place.Path, "/") == "" || !strings.HasSuffix(place.Path, ".db") {
		errs = append(errs, field.Invalid(at.Child("location"), from.Location, "it is not s3://BUCKET/PREFIX/NAME.db"))
	}
	store, err := url.Parse(from.Endpoint)
	isStore := err == nil && store.Scheme == "https" && store.Host != "" && store.User == nil && strings.Trim(store.Path, "/") == ""
	if from.Endpoint != "" && !isStore {
		errs = append(errs, field.Invalid(at.Child("endpoint"), from.Endpoint, "it is no URL of an object store, such as https://s3.example:9000"))
	}
	for _, why := range apivalidation.NameIsDNSSubdomain(from.SecretRef.Name, false) {
		errs = append(errs, field.Invalid(at.Child("secretRef", "name"), from.SecretRef.Name, why))
	}
	return errs
}

// ValidateOperationUpdate refuses every change of what is to be done: hosts were asked for it already.
func ValidateOperationUpdate(old, updated *bootstrapv1.KubexmOperation) field.ErrorList {
	const why = "an operation cannot be changed: create another one"
	var errs field.ErrorList
	path, a, b := field.NewPath("spec"), old.Spec, updated.Spec
	for _, one := range []struct {
		path *field.Path
		same bool
	}{
		{path.Child("type"), a.Type == b.Type},
		{path.Child("components"), slices.Equal(a.Components, b.Components)},
		{path.Child("certificates"), slices.Equal(a.Certificates, b.Certificates)},
		{path.Child("restoreEtcd"), equality.Semantic.DeepEqual(a.RestoreEtcd, b.RestoreEtcd)},
		{path.Child("target", "kind"), a.Target.Kind == b.Target.Kind},
		{path.Child("target", "name"), a.Target.Name == b.Target.Name},
		{path.Child("maxConcurrent"), ptr.Equal(a.MaxConcurrent, b.MaxConcurrent)},
		{path.Child("timeoutSeconds"), ptr.Equal(a.TimeoutSeconds, b.TimeoutSeconds)},
		{path.Child("ttlSecondsAfterFinished"), ptr.Equal(a.TTLSecondsAfterFinished, b.TTLSecondsAfterFinished)},
	} {
		if !one.same {
			errs = append(errs, field.Forbidden(one.path, why))
		}
	}
	return errs
}
