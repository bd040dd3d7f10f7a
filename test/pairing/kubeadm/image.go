// Copyright 2026 The cluster-api-provider-kubexm Authors.
// SPDX-License-Identifier: Apache-2.0

package kubeadm

import (
	"archive/tar"
	"context"
	"embed"
	"fmt"
	"io"
	"path"
	"runtime"
	"slices"
	"strings"

	"github.com/mensylisir/cluster-api-provider-kubexm/pkg/artifact"
	"github.com/mensylisir/cluster-api-provider-kubexm/test/hosts"
)

// own are the files of the image that come from no bundle, by their paths.
//
//go:embed image
var own embed.FS

// programs are those of the image, by their components' directories on a host. Where no names are given, it has all.
var programs = []struct {
	component, directory string
	names                []string
}{
	{"containerd", "/usr/local/bin", nil},
	{"runc", "/usr/local/bin", nil},
	{"cni-plugins", "/opt/cni/bin", nil},
	{artifact.Kubernetes, "/usr/local/bin", []string{"kubelet", "kubeadm"}},
}

// Image is what a container image is called in the bundle's catalogue, and the further name that it has on the host, "" if none.
type Image struct{ Name, As string }

// Bake makes of a host one that has booted from an image for KubeadmConfig: containerd, a kubelet that waits for kubeadm, kubeadm, network
// plugins and container images. It is what an image builder does, and knows nothing of any cluster.
func Bake(ctx context.Context, on *hosts.Host, from *artifact.Bundle, images ...Image) error {
	read, write := io.Pipe()
	go func() { write.CloseWithError(pack(write, from)) }()
	unpack := on.Command(ctx, "tar", "--extract", "--no-same-owner", "--directory=/")
	unpack.Stdin = read
	if out, err := unpack.CombinedOutput(); err != nil {
		return fmt.Errorf("%s: unpack the image: %w: %s", on.Name, err, out)
	}
	const enable = `sysctl --quiet --system || :
systemctl daemon-reload
systemctl enable --quiet kubelet.service
systemctl enable --quiet --now containerd.service`
	if _, err := on.Exec(ctx, "sh", "-ec", enable); err != nil {
		return fmt.Errorf("%s: %w", on.Name, err)
	}
	for _, image := range images {
		if err := load(ctx, on, from, image); err != nil {
			return fmt.Errorf("%s: load the image %s: %w", on.Name, image.Name, err)
		}
	}
	return nil
}

// pack writes the image's files as tar.
func pack(to io.Writer, from *artifact.Bundle) error {
	archive := tar.NewWriter(to)
	for _, of := range programs {
		found, err := from.Binaries(of.component, "", runtime.GOARCH)
		if err != nil {
			return err
		}
		for _, program := range found {
			if of.names != nil && !slices.Contains(of.names, program.Name) {
				continue
			}
			content, err := program.Open()
			if err != nil {
				return err
			}
			err = add(archive, path.Join(of.directory, program.Name), 0o755, program.Size, content)
			_ = content.Close()
			if err != nil {
				return err
			}
		}
	}
	for name, at := range map[string]string{
		"containerd.toml": "/etc/containerd/config.toml", "containerd.service": "/etc/systemd/system/containerd.service",
		"kubelet.service": "/etc/systemd/system/kubelet.service", "forward.conf": "/etc/sysctl.d/99-kubernetes.conf",
	} {
		content, err := own.ReadFile("image/" + name)
		if err != nil {
			return err
		}
		text := strings.ReplaceAll(string(content), "$PAUSE", from.Images(runtime.GOARCH)["pause"])
		if err := add(archive, at, 0o644, int64(len(text)), strings.NewReader(text)); err != nil {
			return err
		}
	}
	return archive.Close()
}

func add(archive *tar.Writer, name string, mode, size int64, content io.Reader) error {
	if err := archive.WriteHeader(&tar.Header{Name: strings.TrimPrefix(name, "/"), Mode: mode, Size: size}); err != nil {
		return err
	}
	_, err := io.Copy(archive, content)
	return err
}

// load puts a container image into the host's store.
func load(ctx context.Context, on *hosts.Host, from *artifact.Bundle, image Image) error {
	ref, err := from.Images(runtime.GOARCH).Refs(image.Name)
	if err != nil {
		return err
	}
	archive, err := from.ImageArchive(runtime.GOARCH, ref...)
	if err != nil {
		return err
	}
	content, err := archive.Open()
	if err != nil {
		return err
	}
	defer content.Close()
	ctr := []string{"/usr/local/bin/ctr", "--namespace", "k8s.io", "images"}
	into := on.Command(ctx, append(ctr, "import", "--local", "-")...)
	into.Stdin = content
	if out, err := into.CombinedOutput(); err != nil {
		return fmt.Errorf("%w: %s", err, out)
	}
	if image.As == "" {
		return nil
	}
	_, err = on.Exec(ctx, append(ctr, "tag", ref[0], image.As)...)
	return err
}
