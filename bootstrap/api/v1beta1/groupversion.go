// Copyright 2026 The cluster-api-provider-kubexm Authors.
// SPDX-License-Identifier: Apache-2.0

package v1beta1

import (
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/runtime/schema"
)

// GroupVersion is the group and version of the kinds in this package.
var GroupVersion = schema.GroupVersion{Group: "bootstrap.cluster.x-k8s.io", Version: "v1beta1"}

// AddToScheme adds the kinds in this package to a scheme.
func AddToScheme(scheme *runtime.Scheme) error {
	scheme.AddKnownTypes(GroupVersion,
		&KubexmClusterConfig{}, &KubexmClusterConfigList{},
		&KubexmConfig{}, &KubexmConfigList{},
		&KubexmConfigTemplate{}, &KubexmConfigTemplateList{},
		&KubexmOperation{}, &KubexmOperationList{},
		&KubexmRemediation{}, &KubexmRemediationList{},
		&KubexmRemediationTemplate{}, &KubexmRemediationTemplateList{},
	)
	metav1.AddToGroupVersion(scheme, GroupVersion)
	return nil
}
