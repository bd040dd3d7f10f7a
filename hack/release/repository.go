// Copyright 2026 The cluster-api-provider-kubexm Authors.
// SPDX-License-Identifier: Apache-2.0

package main

import (
	"fmt"
	"maps"
	"os"
	"path/filepath"
	"slices"
	"strings"

	utilversion "k8s.io/apimachinery/pkg/util/version"
	clusterctlv1 "sigs.k8s.io/cluster-api/cmd/clusterctl/api/v1alpha3"
	"sigs.k8s.io/yaml"
)

// templates are the files of templates/cluster that clusterctl offers, by the names under which it looks for them: flavors
// of clusters, and classes.
var templates = map[string]string{
	"cluster-template.yaml":                        "cluster.yaml",
	"cluster-template-byoh.yaml":                   "cluster-byoh.yaml",
	"cluster-template-dev.yaml":                    "cluster-dev.yaml",
	"cluster-template-ha.yaml":                     "cluster-ha.yaml",
	"cluster-template-metal3.yaml":                 "cluster-metal3.yaml",
	"cluster-template-metal3-kubeadm-workers.yaml": "cluster-metal3-kubeadm-workers.yaml",
	"cluster-template-topology.yaml":               "cluster-topology.yaml",
	"cluster-template-topology-byoh.yaml":          "cluster-topology-byoh.yaml",
	"cluster-template-topology-dev.yaml":           "cluster-topology-dev.yaml",
	"cluster-template-topology-metal3.yaml":        "cluster-topology-metal3.yaml",
	"clusterclass-kubexm-byoh.yaml":                "clusterclass-byoh.yaml",
	"clusterclass-kubexm-dev.yaml":                 "clusterclass-dev.yaml",
	"clusterclass-kubexm-metal3.yaml":              "clusterclass-metal3.yaml",
	"clusterclass-kubexm.yaml":                     "clusterclass.yaml",
}

// writeRepository writes the version of every provider, and the configuration by which clusterctl finds them.
func writeRepository(root string, o *options) error {
	providers, err := readProviders(root)
	if err != nil {
		return err
	}
	metadata, err := readMetadata(root, o.version)
	if err != nil {
		return err
	}
	for i := range providers {
		p := &providers[i]
		files := map[string][]byte{"metadata.yaml": metadata}
		if files[p.Config.ComponentsFile], err = p.components(o); err != nil {
			return err
		}
		if files["namespaced-"+p.Config.ComponentsFile], err = p.namespaced(o); err != nil {
			return err
		}
		if p.Label == infrastructure {
			for name, source := range templates {
				if files[name], err = os.ReadFile(filepath.Join(root, "templates", "cluster", source)); err != nil {
					return err
				}
			}
		}
		if err := writeFiles(filepath.Join(o.out, p.Label, o.version), files); err != nil {
			return err
		}
	}
	configuration, err := clusterctlConfiguration(o.out, providers)
	if err != nil {
		return err
	}
	return writeFiles(o.out, map[string][]byte{"clusterctl.yaml": configuration})
}

// readMetadata returns metadata.yaml if it says which contract the version follows.
func readMetadata(root, version string) ([]byte, error) {
	path := filepath.Join(root, "metadata.yaml")
	data, err := os.ReadFile(path)
	if err != nil {
		return nil, err
	}
	metadata := &clusterctlv1.Metadata{}
	if err := yaml.UnmarshalStrict(data, metadata); err != nil {
		return nil, fmt.Errorf("%s: %w", path, err)
	}
	parsed, err := utilversion.ParseSemantic(version)
	if err != nil {
		return nil, err
	}
	if metadata.GetReleaseSeriesForVersion(parsed) == nil {
		return nil, fmt.Errorf("%s has no release series for %s: add a line with its major and minor version and its contract", path, version)
	}
	return data, nil
}

// clusterctlConfiguration names the repository at out by URLs that mean the newest version in it.
func clusterctlConfiguration(out string, providers []provider) ([]byte, error) {
	type entry struct {
		Name string `json:"name"`
		Type string `json:"type"`
		URL  string `json:"url"`
	}
	var entries []entry
	for _, p := range providers {
		name := p.Label[strings.LastIndex(p.Label, "-")+1:]
		entries = append(entries, entry{
			Name: name, Type: p.Config.Type,
			URL: "file://" + filepath.ToSlash(filepath.Join(out, p.Label, "latest", p.Config.ComponentsFile)),
		})
	}
	return yaml.Marshal(map[string]any{"providers": entries})
}

func writeFiles(dir string, files map[string][]byte) error {
	if err := os.MkdirAll(dir, 0o755); err != nil {
		return err
	}
	for _, name := range slices.Sorted(maps.Keys(files)) {
		if err := os.WriteFile(filepath.Join(dir, name), files[name], 0o644); err != nil {
			return err
		}
	}
	return nil
}
