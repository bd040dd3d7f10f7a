// Copyright 2026 The cluster-api-provider-kubexm Authors.
// SPDX-License-Identifier: Apache-2.0

package main

import (
	"bytes"
	"encoding/json"
	"fmt"
	"os"
	"path/filepath"
	"slices"

	"sigs.k8s.io/kustomize/api/filters/imagetag"
	"sigs.k8s.io/kustomize/api/krusty"
	"sigs.k8s.io/kustomize/api/types"
	"sigs.k8s.io/kustomize/kyaml/filesys"
	"sigs.k8s.io/kustomize/kyaml/resid"
)

// defaultRepository is that of the image in config/base, whose tag is no release's.
const defaultRepository = "ghcr.io/mensylisir/cluster-api-provider-kubexm/manager"

// infrastructure is the label of the provider whose repository clusterctl reads templates from.
const infrastructure = "infrastructure-kubexm"

// provider is one of ours, as its clusterctl-settings.json says for clusterctl's own tools too.
type provider struct {
	// dir has its kustomization.
	dir string
	// Label is clusterctl's name for provider and kind, such as bootstrap-kubexm.
	Label  string `json:"name"`
	Config struct {
		ComponentsFile string `json:"componentsFile"`
		// NextVersion is newer than all that are released, and ConfigFolder has the kustomization, from dir.
		NextVersion  string `json:"nextVersion"`
		ConfigFolder string `json:"configFolder"`
		// Type is a kind of provider, such as BootstrapProvider.
		Type string `json:"type"`
	} `json:"config"`
}

// settingsFile is where clusterctl's tools look for the providers of a repository. At the root it says which directories have one each.
const settingsFile = "clusterctl-settings.json"

func readProviders(root string) ([]provider, error) {
	var settings struct {
		Providers    []string `json:"providers"`
		Repositories []string `json:"provider_repos"`
	}
	if err := readSettings(filepath.Join(root, settingsFile), &settings); err != nil {
		return nil, err
	}
	all := make([]provider, 0, len(settings.Repositories))
	for _, dir := range settings.Repositories {
		p := provider{dir: filepath.Join(root, dir)}
		path := filepath.Join(p.dir, settingsFile)
		if err := readSettings(path, &p); err != nil {
			return nil, err
		}
		if !slices.Contains(settings.Providers, p.Label) {
			return nil, fmt.Errorf("%s: %s is none of the providers of %s: %v", path, p.Label, settingsFile, settings.Providers)
		}
		all = append(all, p)
	}
	return all, nil
}

func readSettings(path string, into any) error {
	data, err := os.ReadFile(path)
	if err != nil {
		return err
	}
	decoder := json.NewDecoder(bytes.NewReader(data))
	decoder.DisallowUnknownFields()
	if err := decoder.Decode(into); err != nil {
		return fmt.Errorf("%s: %w", path, err)
	}
	return nil
}

// components is one YAML file with everything that the provider is in a cluster.
func (p *provider) components(o *options) ([]byte, error) { return p.build(p.dir, o) }

// namespaced is the same for a manager that has rights in one namespace alone.
func (p *provider) namespaced(o *options) ([]byte, error) {
	return p.build(filepath.Join(filepath.Dir(p.dir), "namespaced", filepath.Base(p.dir)), o)
}

func (p *provider) build(dir string, o *options) ([]byte, error) {
	all, err := krusty.MakeKustomizer(krusty.MakeDefaultOptions()).Run(filesys.MakeFsOnDisk(), dir)
	if err != nil {
		return nil, fmt.Errorf("kustomize build %s: %w", dir, err)
	}
	if err := all.ApplyFilter(imagetag.Filter{
		ImageTag: types.Image{Name: defaultRepository, NewName: o.repository, NewTag: o.version},
		FsSlice:  types.FsSlice{{Gvk: resid.Gvk{Kind: "Deployment"}, Path: "spec/template/spec/containers[]/image"}},
	}); err != nil {
		return nil, fmt.Errorf("image of %s: %w", p.Label, err)
	}
	return all.AsYaml()
}
