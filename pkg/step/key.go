// Copyright 2026 The cluster-api-provider-kubexm Authors.
// SPDX-License-Identifier: Apache-2.0

package step

import "fmt"

// Key is a key of the cluster that is for good, in a file of its own, and in others that are made of it. What is missing on the host is
// written, and what is made of the key is brought to what is declared. A host that has another key is refused before anything of a run is
// done there: what was encrypted with that one could not be read any more. The contents are never asked of the host: their digests tell.
func Key(path string, ref SecretRef, madeOf ...File) []Step {
	parts := []Step{File{Path: path, Mode: keyMode, Content: Secret(ref.Name, ref.Key), Key: path}}
	for _, f := range madeOf {
		f.Key = path
		parts = append(parts, f)
	}
	return parts
}

// checkKey refuses a host that has another key. The file with the key alone tells; where it is missing, a file that is made of another one
// does.
func (f File) checkKey(v View) error {
	tells, want := f.Key, ""
	for _, s := range f.Content {
		if s.Secret == nil {
			continue
		}
		if want != "" {
			return fmt.Errorf("file %s: it is made of more than one key", f.Path)
		}
		var err error
		if want, err = (File{Content: Text{s}}).digest(v.Values); err != nil {
			return err
		}
	}
	if want == "" {
		return fmt.Errorf("file %s: it is made of no key", f.Path)
	}
	have := v.Facts.Paths[tells]
	if !have.Exists && tells != f.Path {
		var err error
		if want, err = f.digest(v.Values); err != nil {
			return err
		}
		tells, have = f.Path, v.Facts.Paths[f.Path]
	}
	if !have.Exists || have.Digest == want {
		return nil
	}
	err := otherAuthority(v, fmt.Sprintf("%s is of another key, or damaged: it does not have the cluster's %s, and what was encrypted with "+
		"another key could not be read any more", tells, f.Content.refs()))
	err.Remedy = "if the host belongs to this cluster, restore the key that it was made with: from a backup, or from a control plane host by " +
		"kubexm certs recover; if only this file is damaged, and other control plane hosts have the key, move the file away. " +
		"If the host belongs to another cluster, reset it there first"
	return err
}
