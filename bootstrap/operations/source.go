// Copyright 2026 The cluster-api-provider-kubexm Authors.
// SPDX-License-Identifier: Apache-2.0

package operations

import (
	"context"
	"fmt"
	"io"
	"strconv"

	corev1 "k8s.io/api/core/v1"
	"sigs.k8s.io/controller-runtime/pkg/client"

	bootstrapv1 "github.com/mensylisir/cluster-api-provider-kubexm/bootstrap/api/v1beta1"
	"github.com/mensylisir/cluster-api-provider-kubexm/pkg/backup"
	"github.com/mensylisir/cluster-api-provider-kubexm/pkg/engine"
	"github.com/mensylisir/cluster-api-provider-kubexm/pkg/host"
	"github.com/mensylisir/cluster-api-provider-kubexm/pkg/secret"
	"github.com/mensylisir/cluster-api-provider-kubexm/pkg/step"
)

// Keys of a Secret by which an object store is read.
const (
	keyAccessKeyID     = "access-key-id"
	keySecretAccessKey = "secret-access-key"
	keySessionToken    = "session-token"
	keyAuthorities     = "ca.crt"
	keyEndpoint        = "endpoint"
)

// sourceOf is where the backup lies. Keys are read when they are needed, so that those that were changed count.
func (r *KubexmOperationReconciler) sourceOf(
	ctx context.Context, o *bootstrapv1.KubexmOperation, options *engine.Options,
) (backup.Source, error) {
	from := &o.Spec.RestoreEtcd.Snapshot
	if from.Host != (bootstrapv1.EtcdSnapshotOnHost{}) {
		dial := options.Dial
		return backup.OnHost{
			Path: from.Host.Path,
			Dial: func(ctx context.Context) (host.Host, error) { return dial(ctx, from.Host.Name) },
		}, nil
	}
	at := &from.Bucket
	place, name, err := backup.Split(at.Location)
	if err != nil {
		return nil, err
	}
	s, key := &corev1.Secret{}, client.ObjectKey{Namespace: o.Namespace, Name: at.SecretRef.Name}
	if err := r.Reader.Get(ctx, key, s); err != nil {
		return nil, fmt.Errorf("get the Secret %s with the keys of the object store: %w", key.Name, err)
	}
	if s.Labels[bootstrapv1.ForHostsLabel] != bootstrapv1.ForHostsObjectStore {
		return nil, fmt.Errorf("the Secret %[1]s has no label %[2]s=%[3]s, so nothing is read with it; anyone who may change it agrees by: "+
			"kubectl label secret -n %[4]s %[1]s %[2]s=%[3]s", s.Name, bootstrapv1.ForHostsLabel, bootstrapv1.ForHostsObjectStore, s.Namespace)
	}
	// Who creates a KubexmOperation need not be one who may write Secrets, and is not to choose whose server a restored etcd comes from.
	if only, set := s.Data[keyEndpoint]; set && string(only) != at.Endpoint {
		return nil, fmt.Errorf("the Secret %s (%s) is for %s alone, and spec.restoreEtcd.snapshot.bucket.endpoint is %s, so nothing is read "+
			"with it: name the Secret of that object store, or the endpoint letter by letter as the Secret has it",
			s.Name, keyEndpoint, storeAt(string(only)), storeAt(at.Endpoint))
	}
	for _, needed := range []string{keyAccessKeyID, keySecretAccessKey} {
		if len(s.Data[needed]) == 0 {
			return nil, fmt.Errorf("the Secret %s has no %s", s.Name, needed)
		}
	}
	bucket, err := backup.OpenBucket(place, backup.BucketOptions{
		Endpoint: at.Endpoint, Region: at.Region, Trusted: s.Data[keyAuthorities],
		Keys: backup.Keys{
			ID: string(s.Data[keyAccessKeyID]), Secret: secret.New(s.Data[keySecretAccessKey]), Token: secret.New(s.Data[keySessionToken]),
		},
	})
	if err != nil {
		return nil, err
	}
	return backup.InBucket{Bucket: bucket, Name: name}, nil
}

// storeAt is an endpoint for people, with all that tells it from another.
func storeAt(endpoint string) string {
	if endpoint == "" {
		return "AWS's"
	}
	return strconv.Quote(endpoint)
}

// snapshot is the one content that a restore sends.
type snapshot struct {
	from   backup.Source
	digest string
}

// Open reads it from where the backup lies: hosts verify what they are sent.
func (s snapshot) Open(ctx context.Context, a step.Artifact) (io.ReadCloser, error) {
	if a.Digest != s.digest {
		return nil, fmt.Errorf("defect: a restore sends %s, and no %s", s.digest, a.Digest)
	}
	return s.from.Open(ctx)
}
