// Copyright 2026 The cluster-api-provider-kubexm Authors.
// SPDX-License-Identifier: Apache-2.0

package kube

import (
	"bytes"
	"cmp"
	"context"
	"encoding/json"
	"fmt"
	"maps"
	"reflect"
	"slices"
	"strings"

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/apimachinery/pkg/util/version"
	"k8s.io/client-go/discovery"
	"k8s.io/client-go/kubernetes/scheme"
	"k8s.io/client-go/metadata"
)

// RemovedAPI is a version of a kind that is in use, and that another version of Kubernetes does not serve.
type RemovedAPI struct {
	Group, Version, Resource string
	// RemovedIn is the first version of Kubernetes that does not serve it, such as 1.37.
	RemovedIn string
	// Requested is whether somebody has asked for it since the API server that answers was started.
	Requested bool
	// Objects is how many were last written by it, or if no other version is served how many there are. Examples are some of them.
	Objects  int
	Examples []string
	// Managers are who wrote them, as far as it is known.
	Managers []string
}

// most is how many examples and managers are named.
const most = 3

func (r RemovedAPI) String() string {
	var text strings.Builder
	fmt.Fprintf(&text, "%s in %s/%s, which is not served any more from v%s on", r.Resource, cmp.Or(r.Group, "core"), r.Version, r.RemovedIn)
	var uses []string
	if r.Objects > 0 {
		objects := fmt.Sprintf("%d objects are written by it", r.Objects)
		if len(r.Examples) > 0 {
			objects += ", such as " + strings.Join(r.Examples, ", ")
		}
		if len(r.Managers) > 0 {
			objects += " (by " + strings.Join(r.Managers, ", ") + ")"
		}
		uses = append(uses, objects)
	}
	if r.Requested {
		uses = append(uses, "somebody has asked for it since the API server was started")
	}
	return text.String() + ": " + strings.Join(uses, "; ")
}

// RemovedAPIs are the versions of Kubernetes' own kinds that are in use and that a version of Kubernetes, such as v1.37.0, does not
// serve: those that the API server that answers was asked for since it was started, as its metrics say, and those that objects were
// last written by, as their managers and kubectl's annotation say. Nothing is asked of the kinds by these versions themselves, which
// would be a use of them.
func (c *Cluster) RemovedAPIs(ctx context.Context, kubernetes string) ([]RemovedAPI, error) {
	target, err := version.ParseSemantic(kubernetes)
	if err != nil {
		return nil, fmt.Errorf("version %s: %w", kubernetes, err)
	}
	text, err := c.typed.Discovery().RESTClient().Get().AbsPath("/metrics").DoRaw(ctx)
	if err != nil {
		return nil, c.fail(err, "reading its metrics")
	}
	metrics, err := readAPIMetrics(bytes.NewReader(text))
	if err != nil {
		return nil, c.fail(err, "reading its metrics")
	}
	served, err := bounded(ctx, func() (map[schema.GroupKind][]servedAPI, error) { return servedAPIs(c.typed.Discovery()) })
	if err != nil {
		return nil, c.fail(err, "asking what it serves")
	}
	found := map[schema.GroupVersionResource]*RemovedAPI{}
	for at, removed := range metrics.requested {
		if goneIn(removed, target) {
			found[at] = &RemovedAPI{Group: at.Group, Version: at.Version, Resource: at.Resource, RemovedIn: removed, Requested: true}
		}
	}
	for kind, versions := range served {
		for i := range versions {
			at, removed := versions[i].at, removedIn(kind.WithVersion(versions[i].at.Version))
			if !goneIn(removed, target) {
				continue
			}
			one := cmp.Or(found[at], &RemovedAPI{Group: at.Group, Version: at.Version, Resource: at.Resource, RemovedIn: removed})
			stays := slices.IndexFunc(versions, func(s servedAPI) bool {
				return !goneIn(removedIn(kind.WithVersion(s.at.Version)), target)
			})
			if stays < 0 {
				one.Objects = metrics.objects[at.GroupResource()]
			} else if err := c.writtenBy(ctx, versions[stays].at, one); err != nil {
				return nil, c.fail(err, "looking at %s", at.GroupResource())
			}
			if one.Objects > 0 || one.Requested {
				found[at] = one
			}
		}
	}
	var all []RemovedAPI
	for _, one := range found {
		all = append(all, *one)
	}
	slices.SortFunc(all, func(a, b RemovedAPI) int { return cmp.Compare(a.String(), b.String()) })
	return all, nil
}

// writtenBy counts the objects that were last written by a version that is removed; they are read by one that stays.
func (c *Cluster) writtenBy(ctx context.Context, stays schema.GroupVersionResource, removed *RemovedAPI) error {
	client, err := metadata.NewForConfig(metadata.ConfigFor(c.config))
	if err != nil {
		return err
	}
	gv := schema.GroupVersion{Group: removed.Group, Version: removed.Version}.String()
	managers := map[string]bool{}
	options := metav1.ListOptions{Limit: 500}
	for {
		page, err := client.Resource(stays).List(ctx, options)
		if err != nil {
			return err
		}
		for i := range page.Items {
			o := &page.Items[i]
			by := writers(o, gv)
			if len(by) == 0 {
				continue
			}
			if removed.Objects++; removed.Objects <= most {
				removed.Examples = append(removed.Examples, strings.TrimPrefix(o.Namespace+"/"+o.Name, "/"))
			}
			for _, name := range by {
				managers[name] = true
			}
		}
		if options.Continue = page.Continue; options.Continue == "" {
			break
		}
	}
	removed.Managers = slices.Sorted(maps.Keys(managers))
	removed.Managers = removed.Managers[:min(len(removed.Managers), most)]
	return nil
}

// writers are who has written an object by a version of its kind.
func writers(o *metav1.PartialObjectMetadata, groupVersion string) []string {
	var by []string
	for _, f := range o.ManagedFields {
		if f.APIVersion == groupVersion {
			by = append(by, f.Manager)
		}
	}
	var applied struct {
		APIVersion string `json:"apiVersion"`
	}
	// What cannot be read is none of kubectl's.
	if err := json.Unmarshal([]byte(o.Annotations[corev1.LastAppliedConfigAnnotation]), &applied); err == nil &&
		applied.APIVersion == groupVersion {
		by = append(by, "kubectl apply")
	}
	return by
}

// servedAPI is a version of a kind that an API server serves.
type servedAPI struct{ at schema.GroupVersionResource }

// servedAPIs are the kinds that can be listed, each with all its versions. Those of servers behind it that do not answer are left out:
// Kubernetes' own are not among them.
func servedAPIs(d discovery.DiscoveryInterface) (map[schema.GroupKind][]servedAPI, error) {
	_, lists, err := d.ServerGroupsAndResources()
	if err != nil && !discovery.IsGroupDiscoveryFailedError(err) {
		return nil, err
	}
	all := map[schema.GroupKind][]servedAPI{}
	for _, list := range lists {
		gv, err := schema.ParseGroupVersion(list.GroupVersion)
		if err != nil {
			return nil, err
		}
		for _, r := range list.APIResources {
			if strings.Contains(r.Name, "/") || !slices.Contains(r.Verbs, "list") {
				continue
			}
			kind := gv.WithKind(r.Kind).GroupKind()
			all[kind] = append(all[kind], servedAPI{gv.WithResource(r.Name)})
		}
	}
	return all, nil
}

// removedIn is the first version of Kubernetes that does not serve a version of one of its kinds, such as 1.37, "" if that is not known.
func removedIn(kind schema.GroupVersionKind) string {
	known, found := scheme.Scheme.AllKnownTypes()[kind]
	if !found {
		return ""
	}
	removed, ends := reflect.New(known).Interface().(interface{ APILifecycleRemoved() (int, int) })
	if !ends {
		return ""
	}
	major, minor := removed.APILifecycleRemoved()
	return fmt.Sprintf("%d.%d", major, minor)
}

// goneIn reports whether what is removed in one version of Kubernetes is not served by another.
func goneIn(removed string, kubernetes *version.Version) bool {
	first, err := version.ParseGeneric(removed)
	return err == nil && version.MajorMinor(kubernetes.Major(), kubernetes.Minor()).AtLeast(first) // a preview of it does not either
}
