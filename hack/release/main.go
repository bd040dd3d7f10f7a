// Copyright 2026 The cluster-api-provider-kubexm Authors.
// SPDX-License-Identifier: Apache-2.0

// Command release writes what a management cluster is given of a version: the components of all three providers and the
// templates, in a repository as clusterctl reads it from a directory, and the image of the one manager that they all run.
//
//	<out>/clusterctl.yaml                                            a configuration of clusterctl that names the repository
//	<out>/<provider label>/<version>/<type>-components.yaml          beside metadata.yaml
//	<out>/infrastructure-kubexm/<version>/cluster-template*.yaml     and clusterclass-*.yaml
//	<out>/images/manager-<version>-<architecture>.tar                an OCI layout, as "ctr -n k8s.io images import" takes it
//
// It is run in the root of the source. Nothing is asked of a registry or a container engine.
package main

import (
	"context"
	"errors"
	"flag"
	"fmt"
	"os"
	"os/signal"
	"path/filepath"
	"runtime"
	"strings"

	utilversion "k8s.io/apimachinery/pkg/util/version"
)

// What the command is asked to write.
const (
	manifests = "manifests"
	image     = "image"
)

// options are the flags.
type options struct {
	what []string
	// version is a semantic version with a v.
	version string
	out     string
	// repository is where clusters pull the manager's image from; its tag is the version.
	repository string
	// architectures are Go's names.
	architectures []string
}

func main() {
	ctx, stop := signal.NotifyContext(context.Background(), os.Interrupt)
	err := run(ctx, os.Args[1:])
	stop()
	if err != nil {
		fmt.Fprintln(os.Stderr, "release:", err)
		os.Exit(1)
	}
}

func run(ctx context.Context, args []string) error {
	o, err := parse(args)
	if errors.Is(err, flag.ErrHelp) {
		return nil
	}
	if err != nil {
		return err
	}
	for _, what := range o.what {
		switch what {
		case manifests:
			err = writeRepository(".", o)
		case image:
			err = writeImages(ctx, ".", o)
		}
		if err != nil {
			return fmt.Errorf("%s of %s: %w", what, o.version, err)
		}
	}
	return nil
}

// parse reads the command line. The error is flag.ErrHelp when the flags were asked for, and printed.
func parse(args []string) (*options, error) {
	o := &options{}
	var architectures string
	fs := flag.NewFlagSet("release", flag.ContinueOnError)
	fs.StringVar(&o.version, "version", "", "version of the release, such as v0.1.0; metadata.yaml must have its series")
	fs.StringVar(&o.out, "out", "build/release", "directory to write to; other versions in it stay")
	fs.StringVar(&o.repository, "image-repository", defaultRepository, "where clusters find the manager's image, whose tag is the version")
	fs.StringVar(&architectures, "arch", runtime.GOARCH, "architectures of the image, with commas between them")
	fs.Usage = func() {
		fmt.Fprintf(fs.Output(), "release -version v0.1.0 [flags] [%s] [%s]: writes both if neither is named\n", manifests, image)
		fs.PrintDefaults()
	}
	if err := fs.Parse(args); err != nil {
		return nil, err
	}
	o.architectures = strings.Split(architectures, ",")
	o.what = fs.Args()
	if len(o.what) == 0 {
		o.what = []string{manifests, image}
	}
	var err error
	if o.out, err = filepath.Abs(o.out); err != nil {
		return nil, err
	}
	return o, o.validate()
}

func (o *options) validate() error {
	var errs []error
	for _, what := range o.what {
		if what != manifests && what != image {
			errs = append(errs, fmt.Errorf("%q is neither %s nor %s", what, manifests, image))
		}
	}
	if _, err := utilversion.ParseSemantic(o.version); err != nil || !strings.HasPrefix(o.version, "v") {
		errs = append(errs, fmt.Errorf("-version: %q: use a semantic version with a v, such as v0.1.0", o.version))
	}
	for _, arch := range o.architectures {
		if arch != "amd64" && arch != "arm64" {
			errs = append(errs, fmt.Errorf("-arch: %q is neither amd64 nor arm64", arch))
		}
	}
	return errors.Join(errs...)
}

// reference is the manager's image.
func (o *options) reference() string { return o.repository + ":" + o.version }
