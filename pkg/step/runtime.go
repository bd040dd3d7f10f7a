// Copyright 2026 The cluster-api-provider-kubexm Authors.
// SPDX-License-Identifier: Apache-2.0

package step

import (
	"context"
	"io"
	"time"

	corev1 "k8s.io/api/core/v1"

	"github.com/mensylisir/cluster-api-provider-kubexm/pkg/host"
	"github.com/mensylisir/cluster-api-provider-kubexm/pkg/secret"
)

// Runtime is what a running step may use. The engine makes one per attempt.
type Runtime struct {
	// View is what Precheck decided from.
	View
	// Task is the plan node's task, for the undo store. Run is the run's ID.
	Task, Run string
	// Session changes the host; nil on the controller.
	Session host.Session
	// Look is a query that the step should have answered together with its act, beside its own: what the engine needs to
	// know next. Seen is where the step puts the answer.
	Look host.Query
	Seen *host.Facts
	// Artifacts opens what steps send.
	Artifacts Artifacts
	// Cluster is the cluster's API, for steps on the controller.
	Cluster Cluster
	// Timeout of this attempt.
	Timeout time.Duration

	// Report tells of progress within the step, in bytes or items.
	Report func(done, total int64)
	// Make publishes an output. The value may be a secret.
	Make func(name string, value []byte)
}

// Artifacts opens artifacts by digest.
type Artifacts interface {
	// Open returns the content whose digest and size a names, from its start. It need not verify it: the far side does.
	Open(ctx context.Context, a Artifact) (io.ReadCloser, error)
}

// Artifact is a reference to content that the controller holds: a file of the bundle, or an archive of images made from
// it. A plan that names artifacts names exactly these bytes.
type Artifact struct {
	// Path in the bundle, e.g. "kubernetes/v1.36.3/amd64/kubelet"; for images "images" (see Refs).
	Path string `json:"path"`
	// Digest is "sha256:" and 64 hex digits of the content; "" for an archive of images, which has Digests.
	Digest string `json:"digest"`
	// Size in bytes (for an archive of images, of its layers).
	Size int64 `json:"size"`
	// Refs, if not empty, are image references: the content is an OCI archive with these images for this architecture.
	// Digests are those of their manifests, in the same order.
	Refs    []string `json:"refs,omitempty"`
	Digests []string `json:"digests,omitempty"`
	Arch    string   `json:"arch,omitempty"`
}

// Cluster is the cluster's API as steps use it. Every call is bounded by ctx and says in its error which server it
// tried.
type Cluster interface {
	// Healthy returns nil when the API server answers /readyz, else what it said.
	Healthy(ctx context.Context) error
	// NodeReady returns nil when the Node exists and is Ready, else why it is not.
	NodeReady(ctx context.Context, name string) error
	// NetworkReady returns nil when the Pod of the network's DaemonSet on the Node is Ready and has told the Node that the
	// network is up, else what is missing.
	NetworkReady(ctx context.Context, namespace, daemonSet, node string) error
	// NodeVersion returns nil when the Node exists, is Ready, and its kubelet is of this version of Kubernetes.
	NodeVersion(ctx context.Context, name, version string) error
	// NodeRegistered returns nil when the Node exists, its kubelet is of this version of Kubernetes, and lacks no more than a network.
	NodeRegistered(ctx context.Context, name, version string) error
	// DrainNode cordons the Node for maintenance and evicts its Pods; the Node says from then on that it is held, until
	// EndMaintenance. A Node that does not exist is fine.
	DrainNode(ctx context.Context, name string) error
	// NodeInMaintenance reports whether the Node is in maintenance.
	NodeInMaintenance(ctx context.Context, name string) (bool, error)
	// EndMaintenance ends that: Pods of these DaemonSets in kube-system that are older than the maintenance are made anew, then the
	// Node is uncordoned, unless it was cordoned before. The error is *NotYet while such a Pod is not Ready.
	EndMaintenance(ctx context.Context, name string, daemonSets []string) error
	// TakeTurn has want.Holder take the turn of a group of hosts, or renew it, for want.Term. It returns whose turn it is afterwards.
	// Over is one that may be taken over if nobody has renewed it: the zero value if none may.
	TakeTurn(ctx context.Context, group string, want, over Turn) (Turn, error)
	// HasTurn reports whether it is the turn of the holder, whoever has taken it in its name.
	HasTurn(ctx context.Context, group, holder string) (bool, error)
	// EndTurn ends the turn of a host, if it is its.
	EndTurn(ctx context.Context, group, holder string) error
	// NodeMetadataDiffers says how the Node's labels and taints differ from those that are declared; SetNodeMetadata makes them so, and
	// removes those that were declared before. Others' are left alone.
	NodeMetadataDiffers(ctx context.Context, name string, labels map[string]string, taints []corev1.Taint) (Diff, error)
	SetNodeMetadata(ctx context.Context, name string, labels map[string]string, taints []corev1.Taint) error
	// Differs reports which of the manifest's objects are absent or differ from what a server-side apply would make of
	// them. Nothing is changed.
	Differs(ctx context.Context, manifest []byte) ([]string, error)
	// Apply applies the manifest server-side with the field manager "kubexm", forcing conflicts.
	Apply(ctx context.Context, manifest []byte) error
	// Token returns a bootstrap token that is valid for at least ttl/2 more, and makes one if there is none.
	Token(ctx context.Context, ttl time.Duration) (secret.Value, error)
	// DeploymentRolledOut returns nil when the newest specification of a Deployment was rolled out once, else how far it is.
	DeploymentRolledOut(ctx context.Context, namespace, name string) error
	// Release reports whether the Helm release is deployed with this chart and these values; Install makes it so.
	ReleaseDiffers(ctx context.Context, r HelmRelease) (string, error)
	InstallRelease(ctx context.Context, r HelmRelease) error
	// AddonsBeside are the Helm releases, as namespace/name, that were installed as addons and are not among those to keep;
	// UninstallAddons uninstalls them.
	AddonsBeside(ctx context.Context, keep []string) ([]string, error)
	UninstallAddons(ctx context.Context, keep []string) error
}

// Turn is whose turn it is in a group of hosts of which one at a time does something.
type Turn struct {
	Holder string
	// Term is how long the turn lasts after it was renewed, and Version another one each time that it is.
	Term    time.Duration
	Version string
}

// HelmRelease is a chart and its values.
type HelmRelease struct {
	Name, Namespace string
	// Chart is the packaged chart (.tgz).
	Chart []byte
	// Values as YAML.
	Values []byte
	// Manifest, if not empty, is what the release is made of in place of a chart.
	Manifest []byte
	// Addon says that it is one: it is found again when it is to go, and its objects in the cluster are compared, too.
	Addon bool
}
