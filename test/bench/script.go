// Copyright 2026 The cluster-api-provider-kubexm Authors.
// SPDX-License-Identifier: Apache-2.0

package main

import (
	"context"
	_ "embed"
	"errors"
	"io"
	"io/fs"
	"os"
	"os/exec"
	"path/filepath"
	"slices"

	"github.com/mensylisir/cluster-api-provider-kubexm/pkg/component/kubeproxy"
	"github.com/mensylisir/cluster-api-provider-kubexm/pkg/spec"
)

// Both scripts begin with nodeScript.
var (
	//go:embed node.sh
	nodeScript string
	//go:embed join.sh
	joinScript string
	//go:embed six.sh
	sixScript string
)

// script is the reference for a host that joins. What it sends is laid out before it is returned.
func (c *cluster) script(name string, role spec.Role) (func(context.Context) error, error) {
	artifacts, err := c.artifacts(role)
	if err != nil {
		return nil, err
	}
	h, err := c.lab.host(name)
	if err != nil {
		return nil, err
	}
	kubectl, err := c.bundle.Binary("kubernetes", "", c.arch, "kubectl")
	if err != nil {
		return nil, err
	}
	env := append(os.Environ(),
		"DIR="+c.lab.dir, "ARTIFACTS="+artifacts, "KUBECTL="+kubectl.Path, "KUBECONFIG="+c.kubeconfig,
		"ROLE="+word(role), "ADDRESS="+h.Address, "PAUSE="+c.bundle.Images(c.arch)["pause"],
		"PROXY="+c.bundle.Images(c.arch)["kube-proxy"]+" "+kubeproxy.Image)
	return func(ctx context.Context) error {
		// Not by standard input, which ssh reads.
		cmd := exec.CommandContext(ctx, "sh", "-c", nodeScript+joinScript, "join.sh", c.members[0].Name, name)
		cmd.Env = env
		return run(cmd, nil)
	}, nil
}

// word is what the scripts call a role.
func word(role spec.Role) string {
	if role == spec.RoleControlPlane {
		return "control-plane"
	}
	return "worker"
}

// artifacts lays out for the script what the pipeline sends to a host of this role: bin and cni with programs, and
// images.tar.
func (c *cluster) artifacts(role spec.Role) (string, error) {
	programs := []string{"kubelet", "kubeadm"}
	images := []string{"pause", "coredns", "flannel", "flannel-cni-plugin", "kube-proxy"}
	if role == spec.RoleControlPlane {
		programs = append(programs, "kubectl", "etcdctl")
		images = append(images, "kube-apiserver", "kube-controller-manager", "kube-scheduler", "etcd")
	}
	dir := filepath.Join(c.lab.dir, word(role))
	archive := filepath.Join(dir, "images.tar")
	if _, err := os.Stat(archive); !errors.Is(err, fs.ErrNotExist) {
		return dir, err
	}
	for _, of := range []struct {
		component, into string
		programs        []string // none means all
	}{
		{"kubernetes", "bin", programs}, {"etcd", "bin", programs}, {"containerd", "bin", nil}, {"runc", "bin", nil}, {"cni-plugins", "cni", nil},
	} {
		if err := c.link(filepath.Join(dir, of.into), of.component, of.programs); err != nil {
			return "", err
		}
	}
	return dir, c.imageArchive(archive, images)
}

// link links to a component's programs from a directory, or to all where none are named.
func (c *cluster) link(dir, component string, programs []string) error {
	files, err := c.bundle.Binaries(component, "", c.arch)
	if err != nil {
		return err
	}
	if err := os.MkdirAll(dir, 0o755); err != nil {
		return err
	}
	for _, f := range files {
		if programs != nil && !slices.Contains(programs, f.Name) {
			continue
		}
		if err := os.Symlink(f.Path, filepath.Join(dir, f.Name)); err != nil {
			return err
		}
	}
	return nil
}

func (c *cluster) imageArchive(path string, names []string) (err error) {
	refs, err := c.bundle.Images(c.arch).Refs(names...)
	if err != nil {
		return err
	}
	archive, err := c.bundle.ImageArchive(c.arch, refs...)
	if err != nil {
		return err
	}
	from, err := archive.Open()
	if err != nil {
		return err
	}
	defer from.Close()
	to, err := os.Create(path)
	if err != nil {
		return err
	}
	if _, err = io.Copy(to, from); err != nil {
		_ = to.Close()
		return err
	}
	return to.Close()
}
