// Copyright 2026 The cluster-api-provider-kubexm Authors.
// SPDX-License-Identifier: Apache-2.0

package provider

import (
	"bufio"
	"bytes"
	"context"
	"errors"
	"fmt"
	"io"
	"net/netip"
	"os"
	"path/filepath"
	"slices"
	"time"

	apiextensionsv1 "k8s.io/apiextensions-apiserver/pkg/apis/apiextensions/v1"
	utilyaml "k8s.io/apimachinery/pkg/util/yaml"
	"sigs.k8s.io/yaml"

	"github.com/mensylisir/cluster-api-provider-kubexm/exp/embedded/child"
	"github.com/mensylisir/cluster-api-provider-kubexm/pkg/pki"
)

// Release is a provider's own release, in a directory of somebody who has it: infrastructure-components.yaml, metadata.yaml, and its
// programs. A release has its manager in an image: it is taken out of there, or built.
type Release struct {
	// Definitions are its CustomResourceDefinitions, without the conversion that its webhooks would do.
	Definitions []*apiextensionsv1.CustomResourceDefinition

	dir string
}

// OpenRelease reads a release with these programs. The error says all that is missing.
func OpenRelease(dir string, programs ...string) (*Release, error) {
	r := &Release{dir: dir}
	var problems []error
	for _, name := range programs {
		if info, err := os.Stat(r.Program(name)); err != nil {
			problems = append(problems, fmt.Errorf("%w: put the provider's program there", err))
		} else if !info.Mode().IsRegular() || info.Mode()&0o111 == 0 {
			problems = append(problems, fmt.Errorf("%s is no program: chmod +x it", r.Program(name)))
		}
	}
	var metadata struct {
		ReleaseSeries []struct{ Contract string }
	}
	content, err := os.ReadFile(filepath.Join(dir, "metadata.yaml"))
	if err == nil {
		err = yaml.Unmarshal(content, &metadata)
	}
	if err == nil && len(metadata.ReleaseSeries) == 0 {
		err = fmt.Errorf("%s has no releaseSeries: it is not clusterctl's metadata of a provider", filepath.Join(dir, "metadata.yaml"))
	}
	problems = append(problems, err, r.readDefinitions())
	if err := errors.Join(problems...); err != nil {
		return nil, fmt.Errorf("the provider's release in %s: %w", dir, err)
	}
	return r, nil
}

// Program is the path of one of its programs.
func (r *Release) Program(name string) string { return filepath.Join(r.dir, name) }

// readDefinitions reads those in infrastructure-components.yaml, and in other files of the kind, such as an IPAM's.
func (r *Release) readDefinitions() error {
	files, err := filepath.Glob(filepath.Join(r.dir, "*-components.yaml"))
	if err != nil {
		return err
	}
	if own := filepath.Join(r.dir, "infrastructure-components.yaml"); !slices.Contains(files, own) {
		return fmt.Errorf("%s: %w", own, os.ErrNotExist)
	}
	for _, file := range files {
		content, err := os.ReadFile(file)
		if err != nil {
			return err
		}
		if err := r.add(content); err != nil {
			return fmt.Errorf("%s: %w", file, err)
		}
	}
	return nil
}

func (r *Release) add(content []byte) error {
	before := len(r.Definitions)
	for reader := utilyaml.NewYAMLReader(bufio.NewReader(bytes.NewReader(content))); ; {
		document, err := reader.Read()
		if errors.Is(err, io.EOF) {
			break
		} else if err != nil {
			return err
		}
		definition := &apiextensionsv1.CustomResourceDefinition{}
		if err := yaml.Unmarshal(document, definition); err != nil || definition.Kind != "CustomResourceDefinition" {
			continue // what is of another kind may have any form
		}
		definition.Spec.Conversion = nil
		r.Definitions = append(r.Definitions, definition)
	}
	if len(r.Definitions) == before {
		return errors.New("it has no CustomResourceDefinition")
	}
	return nil
}

// Run runs the release's program "manager" in a directory, as the user of a kubeconfig, until it is stopped. Its webhooks are served and
// nobody asks them.
func (r *Release) Run(ctx context.Context, dir, kubeconfig string, args ...string) (*child.Process, error) {
	if err := WriteServing(filepath.Join(dir, "k8s-webhook-server", "serving-certs")); err != nil {
		return nil, err
	}
	return child.Start(ctx, child.Spec{
		Name: "manager", Path: r.Program("manager"), Dir: dir, Grace: 30 * time.Second,
		// By default, what controller-runtime serves webhooks with is below the directory for temporary files.
		Env: []string{"KUBECONFIG=" + kubeconfig, "TMPDIR=" + dir, "HOME=" + dir, "PATH=" + os.Getenv("PATH")}, Args: args,
	})
}

// WriteServing writes a certificate and key for a server of this machine: tls.crt and tls.key.
func WriteServing(dir string) error {
	authority, err := pki.NewCA(pki.CARequest{CommonName: "provider", Key: pki.ECDSAP256})
	if err != nil {
		return err
	}
	pair, err := authority.Sign(pki.LeafRequest{
		CommonName: "provider", IPs: []netip.Addr{netip.AddrFrom4([4]byte{127, 0, 0, 1})}, Usages: []pki.Usage{pki.Server},
	})
	if err != nil {
		return err
	}
	if err := os.MkdirAll(dir, 0o700); err != nil {
		return err
	}
	return errors.Join(
		os.WriteFile(filepath.Join(dir, "tls.crt"), pair.Cert, 0o600), os.WriteFile(filepath.Join(dir, "tls.key"), pair.Key.Reveal(), 0o600),
	)
}
