// Copyright 2026 The cluster-api-provider-kubexm Authors.
// SPDX-License-Identifier: Apache-2.0

package artifact

import (
	"context"
	"errors"
	"fmt"
	"maps"
	"net/http"
	"os"
	"path/filepath"
	"runtime"
	"slices"
	"strings"

	"golang.org/x/sync/errgroup"

	"github.com/mensylisir/cluster-api-provider-kubexm/pkg/artifact/build"
	"github.com/mensylisir/cluster-api-provider-kubexm/pkg/artifact/fetch"
	"github.com/mensylisir/cluster-api-provider-kubexm/pkg/artifact/oci"
)

// CreateOptions say which bundle to make. KubernetesVersion, Out and Store must be set.
type CreateOptions struct {
	// KubernetesVersion (v1.36.3) names the release.
	KubernetesVersion string
	// Architectures are Go's names; none means this machine's.
	Architectures []string
	// Out is a directory, or a file that ends in .tar, .tar.gz, .tgz or .tar.zst.
	Out   string
	Store *Store
	// Catalogue is the default one if it is nil.
	Catalogue *Catalogue
	// Systems are operating systems (debian/12) whose packages, those that hosts may need, the bundle is to have; and Packages are more
	// of each of them.
	Systems, Packages []string
	// With are optional components of the release that the bundle is to have.
	With []string
	// Prefer is FromSource if it is empty.
	Prefer Preference
	// Zone names mirrors of the catalogue for downloads; "" is none.
	Zone string
	// CreatedBy is recorded in the manifest ("kubexm v0.1.0").
	CreatedBy string
	// Signer signs the manifest; nil does not.
	Signer Signer
	// Jobs is how many components are made at once. 0 is 2: the compilers fill all cores as it is, but not while they link or fetch.
	Jobs int
	// Progress is notified of how it goes, one event at a time. May be nil.
	Progress func(Event)
	// Client is for downloads; nil is http.DefaultClient.
	Client *http.Client
	// Insecure downloads from http:// too, such as from a mirror of one's own.
	Insecure bool
	// Lock is what the bundle must be made of, nil for anything. What it lacks is added to it, unless Locked, which refuses that.
	Lock   *Lock
	Locked bool
}

// Create makes a bundle, or what of it is not in the store yet, and writes it. What is made stays in the store, so that an interrupted
// call goes on where it was. A directory that holds this very bundle, intact, is left as it is.
//
// Errors: *UnknownVersionError, *build.MissingToolsError before anything is begun; *fetch.SumError, *build.CommandError after;
// *LockError before and after.
func Create(ctx context.Context, opts CreateOptions) (*Bundle, error) {
	b, err := create(ctx, opts)
	if err != nil {
		return nil, fmt.Errorf("bundle for Kubernetes %s: %w", opts.KubernetesVersion, err)
	}
	return b, nil
}

func create(ctx context.Context, opts CreateOptions) (*Bundle, error) {
	p, err := newProduction(ctx, opts)
	if err != nil {
		return nil, err
	}
	if err := p.pin(ctx); err != nil {
		return nil, err
	}
	if err := p.maker.check(ctx, p.orders); err != nil {
		return nil, err
	}
	if err := p.makeComponents(ctx); err != nil {
		return nil, err
	}
	if err := p.makeImages(ctx); err != nil {
		return nil, err
	}
	manifest, err := p.manifest()
	if err != nil {
		return nil, err
	}
	if err := p.compare(manifest); err != nil {
		return nil, err
	}
	if form, isArchive := formOf(opts.Out); isArchive {
		return p.writeArchive(ctx, manifest, form)
	}
	return p.writeDirectory(ctx, manifest)
}

// production is the making of one bundle.
type production struct {
	opts    CreateOptions
	release Release
	archs   []string
	orders  []order
	images  []imageRecipe
	maker   *maker

	components map[componentKey]made
	built      map[imageKey]record
	// pins is nil without a lock.
	pins *pinning
}

type componentKey struct{ name, arch string }

// keyOfOrder tells releases of an operating system from each other, of which a bundle may have several.
func keyOfOrder(o order) componentKey {
	if o.Recipe.Kind == KindPackage {
		return componentKey{o.Recipe.Component + "/" + o.Recipe.Version, o.Recipe.Arch}
	}
	return componentKey{o.Recipe.Component, o.Recipe.Arch}
}

type imageKey struct{ name, arch string }

type made struct {
	order order
	record
}

func newProduction(ctx context.Context, opts CreateOptions) (*production, error) {
	if opts.Store == nil || opts.Out == "" {
		return nil, errors.New("store and out must be set")
	}
	if opts.Prefer != "" && opts.Prefer != FromSource && opts.Prefer != FromUpstream {
		return nil, &UnknownNameError{What: "preference", Name: string(opts.Prefer), Known: []string{string(FromSource), string(FromUpstream)}}
	}
	catalogue := opts.Catalogue
	if catalogue == nil {
		var err error
		if catalogue, err = DefaultCatalogue(); err != nil {
			return nil, err
		}
	}
	release, err := catalogue.Release(opts.KubernetesVersion)
	if err != nil {
		return nil, err
	}
	if release, err = release.With(opts.With...); err != nil {
		return nil, err
	}
	mirrors, err := catalogue.Mirrors(opts.Zone)
	if err != nil {
		return nil, err
	}
	if _, isArchive := formOf(opts.Out); !isArchive {
		if err := replaceable(opts.Out); err != nil { // before hours are spent
			return nil, err
		}
	}
	p := &production{
		opts: opts, release: release, archs: slices.Compact(slices.Sorted(slices.Values(opts.Architectures))),
		maker: &maker{
			store: opts.Store, fetcher: fetch.Fetcher{Client: opts.Client, Mirrors: mirrors, Insecure: opts.Insecure},
			progress: &progress{report: opts.Progress},
		},
		components: map[componentKey]made{}, built: map[imageKey]record{},
	}
	if len(p.archs) == 0 {
		p.archs = []string{runtime.GOARCH}
	}
	if p.images, err = catalogue.imageRecipes(release); err != nil {
		return nil, err
	}
	if p.orders, err = orders(ctx, catalogue, release, p.archs, opts.Prefer); err != nil {
		return nil, err
	}
	systems, err := p.systemOrders(catalogue)
	if err != nil {
		return nil, err
	}
	p.orders = append(p.orders, systems...)
	p.maker.progress.total = len(p.orders) + len(p.images)*len(p.archs)
	return p, nil
}

// orders are what a release takes, the one that takes longest first. What is built from the same module as that one comes
// last: side by side, both would compile the packages that they share.
func orders(ctx context.Context, c *Catalogue, release Release, archs []string, prefer Preference) ([]order, error) {
	goVersion, err := build.GoVersion(ctx)
	if err != nil {
		return nil, err
	}
	var list []order
	for _, name := range append([]string{Kubernetes}, slices.Sorted(maps.Keys(release.Components))...) {
		for _, arch := range archs {
			r, err := c.Recipe(name, release.Version(name), arch)
			if err != nil {
				return nil, err
			}
			if r.Kind == KindChart {
				r.Arch = ""
				if arch != archs[0] {
					continue
				}
			}
			list = append(list, newOrder(r, prefer, goVersion))
		}
	}
	if longest := list[0].Recipe.goModule(); longest != "" {
		rest := list[len(archs):]
		shares := func(o order) bool { return o.Recipe.goModule() == longest }
		slices.SortStableFunc(rest, func(a, b order) int {
			switch {
			case shares(a) == shares(b):
				return 0
			case shares(a):
				return 1
			}
			return -1
		})
	}
	return list, nil
}

func (p *production) makeComponents(ctx context.Context) error {
	jobs := p.opts.Jobs
	if jobs <= 0 {
		jobs = 2
	}
	records := make([]record, len(p.orders))
	group, ctx := errgroup.WithContext(ctx)
	group.SetLimit(jobs)
	for n, o := range p.orders {
		group.Go(func() (err error) {
			if err := ctx.Err(); err != nil {
				return err
			}
			records[n], err = p.maker.fulfil(ctx, o)
			return err
		})
	}
	if err := group.Wait(); err != nil {
		return err
	}
	for n, o := range p.orders {
		p.components[keyOfOrder(o)] = made{o, records[n]}
	}
	return nil
}

func (p *production) makeImages(ctx context.Context) error {
	for _, arch := range p.archs {
		for _, r := range p.images {
			if err := ctx.Err(); err != nil {
				return err
			}
			below := func(name string) *record {
				if name == "" {
					return nil
				}
				return new(p.components[componentKey{name, arch}].record)
			}
			rec, err := p.maker.image(ctx, r, arch, p.components[componentKey{r.Component, arch}].record, below(r.Base), below(r.Over))
			if err != nil {
				return err
			}
			p.built[imageKey{r.Name, arch}] = rec
		}
	}
	return nil
}

// manifest lists what was made, in an order that depends on nothing else.
func (p *production) manifest() (Manifest, error) {
	m := Manifest{
		FormatVersion: FormatVersion, KubernetesVersion: p.release.Kubernetes, Architectures: p.archs,
		Components: map[string]string{Kubernetes: p.release.Kubernetes}, CreatedBy: p.opts.CreatedBy,
	}
	maps.Copy(m.Components, p.release.Components)
	for _, o := range p.orders {
		r := o.Recipe
		if r.Kind == KindPackage {
			items, err := p.systemItems(o)
			if err != nil {
				return Manifest{}, err
			}
			m.Items = append(m.Items, items...)
			continue
		}
		for _, f := range p.components[componentKey{r.Component, r.Arch}].Files {
			i := Item{
				Kind: r.Kind, Component: r.Component, Version: r.Version, Arch: r.Arch, Name: f.Name, Blob: f.Blob, Source: o.source(),
			}
			switch r.Kind {
			case KindBinary:
			case KindChart:
				name, ok := strings.CutSuffix(f.Name, "-"+r.Version+".tgz")
				if !ok {
					return Manifest{}, fmt.Errorf("%s: the chart is %s, which is another version", o, f.Name)
				}
				i.Name = name
			default:
				continue
			}
			i.Path = i.place()
			m.Items = append(m.Items, i)
		}
	}
	for _, arch := range p.archs {
		for _, r := range p.images {
			i, err := p.imageItem(r, arch)
			if err != nil {
				return Manifest{}, err
			}
			m.Items = append(m.Items, i)
		}
	}
	bill, err := sbomOf(m)
	if err != nil {
		return Manifest{}, err
	}
	blob := oci.BlobOf(bill)
	m.SBOM = &blob
	return m, m.validate()
}

// documents are the files that follow from the manifest, with itself and its signature, by their path.
func (p *production) documents(m Manifest, manifest []byte) (map[string][]byte, error) {
	documents, err := m.layoutDocuments()
	if err != nil {
		return nil, err
	}
	if documents[SBOMName], err = sbomOf(m); err != nil {
		return nil, err
	}
	documents[ManifestName] = manifest
	if p.opts.Signer != nil {
		documents[SignatureName], err = sign(manifest, p.opts.Signer)
	}
	return documents, err
}

func (p *production) imageItem(r imageRecipe, arch string) (Item, error) {
	rec := p.built[imageKey{r.Name, arch}]
	manifest, ok := rec.file(imageManifest)
	if !ok {
		return Item{}, fmt.Errorf("image %s: the store has no manifest for it", r.Name)
	}
	data, err := os.ReadFile(p.opts.Store.blob(manifest.SHA256))
	if err != nil {
		return Item{}, err
	}
	blobs, err := oci.Blobs(data)
	if err != nil {
		return Item{}, fmt.Errorf("image %s: %w", r.Name, err)
	}
	i := Item{
		Kind: KindImage, Component: r.Component, Version: r.Version, Arch: arch, Name: r.Name, Blob: manifest.Blob, Blobs: blobs,
		Ref: r.Ref, Digest: "sha256:" + manifest.SHA256, Platform: "linux/" + arch,
		Source: p.components[componentKey{r.Component, arch}].order.source(),
	}
	i.Path = i.place()
	return i, nil
}

// repair takes what err says is damaged out of the store, so that the next call makes it anew.
func (p *production) repair(err error) error {
	var sums []string
	var bad *VerifyError
	var corrupt *CorruptError
	switch {
	case errors.As(err, &bad):
		for _, problem := range bad.Problems {
			sums = append(sums, problem.sum)
		}
	case errors.As(err, &corrupt):
		sums = append(sums, corrupt.Want.SHA256)
	}
	for _, sum := range sums {
		blob := p.opts.Store.blob(sum)
		if got, sumErr := sumFile(blob); sumErr == nil && got.SHA256 != sum {
			err = errors.Join(fmt.Errorf("%w: the store's copy was damaged and is removed; try again", err), os.Remove(blob))
		}
	}
	return err
}

// staging is a fresh directory beside out.
func staging(out string) (string, error) {
	if err := os.MkdirAll(filepath.Dir(out), 0o755); err != nil {
		return "", err
	}
	return os.MkdirTemp(filepath.Dir(out), "."+filepath.Base(out)+".")
}
