// Copyright 2026 The cluster-api-provider-kubexm Authors.
// SPDX-License-Identifier: Apache-2.0

//go:build clusterctl

package clusterctl

import (
	"archive/tar"
	_ "embed"
	"errors"
	"io"
	"maps"
	"os"
	"path"
	"path/filepath"
	"runtime"
	"slices"
	"sync"

	. "github.com/onsi/gomega"

	"github.com/mensylisir/cluster-api-provider-kubexm/pkg/artifact"
	"github.com/mensylisir/cluster-api-provider-kubexm/test/hosts"
)

//go:embed catalogue.yaml
var catalogueYAML []byte

// release is the one that catalogue.yaml has, and older the one that clusters are upgraded from.
const (
	release = "v1.36.3"
	older   = "v1.35.4"
)

// build makes what catalogue.yaml says, or finds it in the store.
func (l *environment) build() {
	catalogue, err := artifact.ParseCatalogue(catalogueYAML)
	l.Expect(err).NotTo(HaveOccurred())
	store, err := artifact.OpenStore("")
	l.Expect(err).NotTo(HaveOccurred())
	l.others, err = artifact.Create(l.t.Context(), artifact.CreateOptions{
		KubernetesVersion: release, Catalogue: catalogue, Store: store, Out: filepath.Join(l.dir, "others"), Jobs: 1,
	})
	l.Expect(err).NotTo(HaveOccurred())
}

// program is the path of one that is not ours.
func (l *environment) program(component, name string) string {
	l.t.Helper()
	file, err := l.others.Binary(component, "", runtime.GOARCH, name)
	l.Expect(err).NotTo(HaveOccurred())
	return file.Path
}

// loadOthers brings the images that are not ours to the management cluster's Nodes.
func (l *environment) loadOthers() {
	images := l.others.Images(runtime.GOARCH)
	archive, err := l.others.ImageArchive(runtime.GOARCH, slices.Collect(maps.Values(images))...)
	l.Expect(err).NotTo(HaveOccurred())
	l.load(archive.Open)
}

// loadManager brings an archive of our manager's image to the management cluster's Nodes.
func (l *environment) loadManager(version string) {
	l.load(func() (io.ReadCloser, error) {
		return os.Open(filepath.Join(l.release, "images", "manager-"+version+"-"+runtime.GOARCH+".tar"))
	})
}

// load imports an archive on the management cluster's Nodes, as "ssh <host> sudo ctr -n k8s.io images import -" does.
func (l *environment) load(open func() (io.ReadCloser, error)) {
	l.t.Helper()
	var all sync.WaitGroup
	for _, host := range l.management.Hosts {
		all.Go(func() {
			content, err := open()
			if err != nil {
				l.t.Error(err)
				return
			}
			defer content.Close()
			l.onHost(host, content, "/usr/local/bin/ctr", "-n", "k8s.io", "images", "import", "-")
		})
	}
	all.Wait()
	l.Expect(l.t.Failed()).To(BeFalse())
}

// bundlesPath is where bundles lie on a host of the management cluster.
const bundlesPath = "/var/lib/kubexm-bundles"

// loadBundles copies the bundles to the host that templates/management/bundles.yaml names, as "scp -r" does.
func (l *environment) loadBundles() {
	host := l.bundleHost()
	for version, bundle := range l.bundles {
		reader, writer := io.Pipe()
		go func() {
			tw := tar.NewWriter(writer)
			writer.CloseWithError(errors.Join(tw.AddFS(os.DirFS(bundle)), tw.Close()))
		}()
		dir := path.Join(bundlesPath, version)
		l.onHost(host, nil, "mkdir", "-p", dir)
		l.onHost(host, reader, "tar", "--extract", "--directory="+dir, "--file=-")
		l.Expect(l.t.Failed()).To(BeFalse())
	}
}

// bundleHost is the management cluster's worker.
func (l *environment) bundleHost() *hosts.Host { return l.management.Hosts[len(l.management.Hosts)-1] }

// onHost runs a command on a host, as root.
func (l *environment) onHost(host *hosts.Host, stdin io.Reader, argv ...string) {
	cmd := host.Command(l.t.Context(), argv...)
	cmd.Stdin = stdin
	if out, err := cmd.CombinedOutput(); err != nil {
		l.t.Errorf("host %s: %s: %v: %s", host.Name, argv[0], err, out)
	}
}
