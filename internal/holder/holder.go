// Copyright 2026 The cluster-api-provider-kubexm Authors.
// SPDX-License-Identifier: Apache-2.0

// Package holder says for which KubexmOperation the hosts of a Cluster's etcd and control plane stand still. The record is an annotation of
// the KubexmClusterConfig, which both providers read, and it counts for as long as its KubexmOperation goes on: one that was removed by
// force holds nobody.
package holder

import (
	"context"
	"fmt"
	"strings"

	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"sigs.k8s.io/controller-runtime/pkg/client"

	bootstrapv1 "github.com/mensylisir/cluster-api-provider-kubexm/bootstrap/api/v1beta1"
)

// By is who holds the hosts: what Of gives for that KubexmOperation, "" if nobody does. c may be nil.
func By(ctx context.Context, reader client.Reader, c *bootstrapv1.KubexmClusterConfig) (string, error) {
	if c == nil || c.Annotations[bootstrapv1.HeldByAnnotation] == "" {
		return "", nil
	}
	value := c.Annotations[bootstrapv1.HeldByAnnotation]
	o := &bootstrapv1.KubexmOperation{}
	err := reader.Get(ctx, client.ObjectKey{Namespace: c.Namespace, Name: Name(value)}, o)
	switch {
	case apierrors.IsNotFound(err) || err == nil && (Of(o) != value || o.Annotations[bootstrapv1.OperationCompletedAnnotation] != ""):
		return "", nil
	case err != nil:
		return "", fmt.Errorf("get the KubexmOperation %s that holds the hosts of etcd and of the control plane: %w", Name(value), err)
	}
	return value, nil
}

// Of is by what a KubexmOperation holds hosts, "" while it has no ID.
func Of(o *bootstrapv1.KubexmOperation) string {
	id, _, _ := strings.Cut(o.Annotations[bootstrapv1.OperationRestoreAnnotation], " ")
	if id == "" {
		return ""
	}
	return o.Name + " " + id
}

// Name is the KubexmOperation's, of what By returns.
func Name(value string) string {
	name, _, _ := strings.Cut(value, " ")
	return name
}

// Why says it to people.
func Why(value string) string {
	return fmt.Sprintf("the KubexmOperation %s holds the hosts of etcd and of the control plane until it has ended: nothing else is done with them",
		Name(value))
}
