// Copyright 2026 The cluster-api-provider-kubexm Authors.
// SPDX-License-Identifier: Apache-2.0

//go:build e2e

package e2e

import (
	"context"
	"fmt"
	"os"
	"path/filepath"
	"strings"

	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime/schema"
	clusterv1 "sigs.k8s.io/cluster-api/api/core/v1beta2"
	"sigs.k8s.io/controller-runtime/pkg/client"

	bootstrapv1 "github.com/mensylisir/cluster-api-provider-kubexm/bootstrap/api/v1beta1"
	controlplanev1 "github.com/mensylisir/cluster-api-provider-kubexm/controlplane/api/v1beta1"
	infrav1 "github.com/mensylisir/cluster-api-provider-kubexm/exp/infrastructure/api/v1alpha1"
)

// logLines is how much of each manager's log is shown.
const logLines = 30

// explain says how far everything is: the conditions of all objects, and the end of each manager's log.
func (e *environment) explain(ctx context.Context) string {
	var text strings.Builder
	for _, kind := range []schema.GroupVersionKind{
		clusterv1.GroupVersion.WithKind("Cluster"), infrav1.GroupVersion.WithKind("KubexmCluster"),
		controlplanev1.GroupVersion.WithKind("KubexmControlPlane"), clusterv1.GroupVersion.WithKind("MachineDeployment"),
		clusterv1.GroupVersion.WithKind("MachineSet"), clusterv1.GroupVersion.WithKind("Machine"),
		bootstrapv1.GroupVersion.WithKind("KubexmConfig"), infrav1.GroupVersion.WithKind("KubexmMachine"),
		infrav1.GroupVersion.WithKind("KubexmHost"),
	} {
		all := &unstructured.UnstructuredList{}
		all.SetGroupVersionKind(kind)
		if err := e.api.List(ctx, all, client.InNamespace(namespace)); err != nil {
			fmt.Fprintf(&text, "%s: %v\n", kind.Kind, err)
		}
		for _, object := range all.Items {
			describe(&text, &object)
		}
	}
	for _, p := range e.providers {
		content, err := os.ReadFile(filepath.Join(p.dir, "manager.log"))
		if err != nil {
			continue // it was not started
		}
		lines := strings.Split(strings.TrimSpace(string(content)), "\n")
		fmt.Fprintf(&text, "the end of the %s manager's log:\n\t%s\n", p.name, strings.Join(lines[max(0, len(lines)-logLines):], "\n\t"))
	}
	return text.String()
}

func describe(text *strings.Builder, object *unstructured.Unstructured) {
	fmt.Fprintf(text, "%s %s", object.GetKind(), object.GetName())
	if object.GetDeletionTimestamp() != nil {
		fmt.Fprintf(text, " (being deleted, held by %v)", object.GetFinalizers())
	}
	text.WriteString("\n")
	conditions, _, _ := unstructured.NestedSlice(object.Object, "status", "conditions")
	for _, each := range conditions {
		c, _ := each.(map[string]any)
		fmt.Fprintf(text, "  %v=%v %v: %v\n", c["type"], c["status"], c["reason"], c["message"])
	}
}
