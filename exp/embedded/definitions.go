// Copyright 2026 The cluster-api-provider-kubexm Authors.
// SPDX-License-Identifier: Apache-2.0

package embedded

import (
	"context"
	"crypto/sha256"
	"encoding/hex"
	"encoding/json"
	"errors"
	"fmt"
	"slices"
	"time"

	"golang.org/x/sync/errgroup"
	apiextensionsv1 "k8s.io/apiextensions-apiserver/pkg/apis/apiextensions/v1"
	apiextensions "k8s.io/apiextensions-apiserver/pkg/client/clientset/clientset/typed/apiextensions/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/apimachinery/pkg/util/sets"
	"k8s.io/apimachinery/pkg/util/wait"
	"k8s.io/client-go/rest"
	clusterctlv1 "sigs.k8s.io/cluster-api/cmd/clusterctl/api/v1alpha3"

	"github.com/mensylisir/cluster-api-provider-kubexm/exp/embedded/crds"
)

// digestAnnotation tells what a definition was installed from, so that a start that finds it unchanged need not send it.
const digestAnnotation = "kubexm.cluster.x-k8s.io/definition-digest"

// definitions returns what is to be installed: core's and the caller's.
func definitions(callers []*apiextensionsv1.CustomResourceDefinition) ([]*apiextensionsv1.CustomResourceDefinition, error) {
	all, err := crds.Core()
	if err != nil {
		return nil, err
	}
	for _, crd := range callers {
		all = append(all, crd.DeepCopy())
	}
	names := sets.New[string]()
	for _, crd := range all {
		if names.Has(crd.Name) {
			return nil, fmt.Errorf("custom resource definition %s: there are two of it", crd.Name)
		}
		names.Insert(crd.Name)

		content, err := json.Marshal(crd)
		if err != nil {
			return nil, fmt.Errorf("custom resource definition %s: %w", crd.Name, err)
		}
		sum := sha256.Sum256(content)
		metav1.SetMetaDataAnnotation(&crd.ObjectMeta, digestAnnotation, hex.EncodeToString(sum[:]))
		// clusterctl init puts it on all that it installs; clusterctl move finds by it what there is to move.
		metav1.SetMetaDataLabel(&crd.ObjectMeta, clusterctlv1.ClusterctlLabel, "")
	}
	return all, nil
}

// installDefinitions makes the API server serve wanted.
func installDefinitions(ctx context.Context, config *rest.Config, wanted []*apiextensionsv1.CustomResourceDefinition) error {
	clients, err := apiextensions.NewForConfig(config)
	if err != nil {
		return err
	}
	client := clients.CustomResourceDefinitions()
	list, err := client.List(ctx, metav1.ListOptions{})
	if err != nil {
		return fmt.Errorf("list custom resource definitions: %w", err)
	}
	found := make(map[string]*apiextensionsv1.CustomResourceDefinition, len(list.Items))
	for i := range list.Items {
		found[list.Items[i].Name] = &list.Items[i]
	}

	install, installCtx := errgroup.WithContext(ctx)
	for _, crd := range wanted {
		install.Go(func() error {
			var err error
			switch old := found[crd.Name]; {
			case old == nil:
				_, err = client.Create(installCtx, crd, metav1.CreateOptions{})
			case old.Annotations[digestAnnotation] != crd.Annotations[digestAnnotation]:
				crd.ResourceVersion = old.ResourceVersion
				_, err = client.Update(installCtx, crd, metav1.UpdateOptions{})
			}
			if err != nil {
				return fmt.Errorf("custom resource definition %s: %w", crd.Name, err)
			}
			return nil
		})
	}
	if err := install.Wait(); err != nil {
		return err
	}
	return waitServed(ctx, clients.RESTClient(), wanted)
}

// waitServed returns when discovery has all kinds. The conditions of a definition say so a little too early.
func waitServed(ctx context.Context, client rest.Interface, wanted []*apiextensionsv1.CustomResourceDefinition) error {
	missing := map[schema.GroupVersion]sets.Set[string]{}
	for _, crd := range wanted {
		for _, version := range crd.Spec.Versions {
			if !version.Served {
				continue
			}
			gv := schema.GroupVersion{Group: crd.Spec.Group, Version: version.Name}
			if missing[gv] == nil {
				missing[gv] = sets.New[string]()
			}
			missing[gv].Insert(crd.Spec.Names.Plural)
		}
	}
	var last error
	err := wait.PollUntilContextTimeout(ctx, readyPoll, readyTimeout, true, func(ctx context.Context) (bool, error) {
		for gv, plurals := range missing {
			var served metav1.APIResourceList
			last = client.Get().AbsPath("/apis", gv.Group, gv.Version).Do(ctx).Into(&served)
			for _, resource := range served.APIResources {
				plurals.Delete(resource.Name)
			}
			if plurals.Len() == 0 {
				delete(missing, gv)
			}
		}
		return len(missing) == 0, nil
	})
	if err != nil {
		var names []string
		for gv, plurals := range missing {
			for plural := range plurals {
				names = append(names, plural+"."+gv.Group+"/"+gv.Version)
			}
		}
		slices.Sort(names)
		return fmt.Errorf("the API server does not serve %v within %s: %w", names, readyTimeout.Round(time.Second), errors.Join(err, last))
	}
	return nil
}
