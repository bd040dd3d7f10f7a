// Copyright 2026 The cluster-api-provider-kubexm Authors.
// SPDX-License-Identifier: Apache-2.0

package artifact

import (
	"bytes"
	"cmp"
	"context"
	"errors"
	"fmt"
	"io/fs"
	"os"
	"slices"
	"strings"

	"sigs.k8s.io/yaml"

	"github.com/mensylisir/cluster-api-provider-kubexm/pkg/atomicfile"
)

// Lock pins what bundles are made of: what it has must be so, and what it has not is added. It is a file for people to review, and to
// keep where the rest of what they declare is kept.
type Lock struct {
	// Downloads are the files that publishers offer, by their URLs, wherever a mirror serves them.
	Downloads []LockedFile `json:"downloads,omitempty"`
	// Images are the images' manifests, by reference and platform.
	Images []LockedImage `json:"images,omitempty"`
	// Packages are those of operating systems, by their paths in a bundle.
	Packages []LockedFile `json:"packages,omitempty"`
}

// LockedFile is a file by its content.
type LockedFile struct {
	URL    string `json:"url,omitempty"`
	Path   string `json:"path,omitempty"`
	Size   int64  `json:"size"`
	SHA256 string `json:"sha256"`
}

// LockedImage is an image by its manifest.
type LockedImage struct {
	Ref      string `json:"ref"`
	Platform string `json:"platform"`
	Digest   string `json:"digest"`
}

// LockError says in what a bundle would differ from its lock, a line each.
type LockError struct{ Differences []string }

func (e *LockError) Error() string {
	return "the bundle would not be what the lock file says, and was not written:\n  " + strings.Join(e.Differences, "\n  ") +
		"\nLook why. Where it is meant, remove these entries from the lock file, and run this once without --locked"
}

const lockHead = "# What bundles are made of: kubexm bundle create --lock. It is compared, added to, and never overwritten.\n"

// ReadLock reads a lock file. One that does not exist is empty.
func ReadLock(path string) (*Lock, error) {
	data, err := os.ReadFile(path)
	if errors.Is(err, fs.ErrNotExist) {
		return &Lock{}, nil
	}
	if err != nil {
		return nil, err
	}
	l := &Lock{}
	if err := yaml.UnmarshalStrict(data, l); err != nil {
		return nil, fmt.Errorf("lock file %s: %w", path, err)
	}
	if err := l.validate(); err != nil {
		return nil, fmt.Errorf("lock file %s: %w", path, err)
	}
	return l, nil
}

// Write writes the lock file, sorted, if it says anything else. A crash leaves it as it was or as it shall be.
func (l *Lock) Write(path string) error {
	text, err := yaml.Marshal(l)
	if err != nil {
		return err
	}
	text = append([]byte(lockHead), text...)
	if was, err := os.ReadFile(path); err == nil && bytes.Equal(was, text) {
		return nil
	}
	return atomicfile.WriteBytes(path, 0o644, text)
}

func (l *Lock) validate() error {
	var errs []error
	seen := map[string]bool{}
	check := func(field string, n int, key, sum string, size int64) {
		switch {
		case key == "":
			errs = append(errs, fmt.Errorf("%s[%d]: it does not say of what", field, n))
		case seen[field+key]:
			errs = append(errs, fmt.Errorf("%s[%d]: %s is there twice", field, n, key))
		case !sumForm.MatchString(sum):
			errs = append(errs, fmt.Errorf("%s[%d]: %s: %q is not 64 hexadecimal digits", field, n, key, sum))
		case size < 0:
			errs = append(errs, fmt.Errorf("%s[%d]: %s: size %d", field, n, key, size))
		}
		seen[field+key] = true
	}
	for n, f := range l.Downloads {
		check("downloads", n, f.URL, f.SHA256, f.Size)
	}
	for n, f := range l.Packages {
		check("packages", n, f.Path, f.SHA256, f.Size)
	}
	for n, i := range l.Images {
		check("images", n, strings.TrimSpace(i.Ref+" "+i.Platform), strings.TrimPrefix(i.Digest, "sha256:"), 0)
	}
	return errors.Join(errs...)
}

// pinning compares what a bundle is made of with a lock, and adds what that lacks.
type pinning struct {
	lock Lock
	// complete says that nothing may be added.
	complete    bool
	differences []string
}

// file compares one file of a list, by what names it.
func (p *pinning) file(list *[]LockedFile, nameOf func(LockedFile) string, f LockedFile) {
	i := slices.IndexFunc(*list, func(is LockedFile) bool { return nameOf(is) == nameOf(f) })
	switch {
	case i < 0 && p.complete:
		p.differs("%s: it is not in the lock file", nameOf(f))
	case i < 0:
		*list = append(*list, f)
	case (*list)[i] != f:
		was := (*list)[i]
		p.differs("%s: sha256 %s (%d bytes), and the lock file has %s (%d bytes)", nameOf(f), f.SHA256, f.Size, was.SHA256, was.Size)
	}
}

func (p *pinning) image(found LockedImage) {
	i := slices.IndexFunc(p.lock.Images, func(is LockedImage) bool { return is.Ref == found.Ref && is.Platform == found.Platform })
	switch {
	case i < 0 && p.complete:
		p.differs("%s %s: it is not in the lock file", found.Ref, found.Platform)
	case i < 0:
		p.lock.Images = append(p.lock.Images, found)
	case p.lock.Images[i] != found:
		p.differs("%s %s: %s, and the lock file has %s", found.Ref, found.Platform, found.Digest, p.lock.Images[i].Digest)
	}
}

func (p *pinning) differs(format string, args ...any) {
	p.differences = append(p.differences, fmt.Sprintf(format, args...))
}

// err is what differs, nil if nothing does.
func (p *pinning) err() error {
	if len(p.differences) == 0 {
		return nil
	}
	return &LockError{Differences: p.differences}
}

func urlOf(f LockedFile) string  { return f.URL }
func pathOf(f LockedFile) string { return f.Path }

// pin has each download compared with the lock, or where that has none with what its publisher says now, before anything is made. What
// was made by an order without a lock is not taken from the store: nobody knows any more what it was made of.
func (p *production) pin(ctx context.Context) error {
	if p.opts.Lock == nil {
		return nil
	}
	p.pins = &pinning{complete: p.opts.Locked, lock: Lock{
		Downloads: slices.Clone(p.opts.Lock.Downloads), Images: slices.Clone(p.opts.Lock.Images),
		Packages: slices.Clone(p.opts.Lock.Packages),
	}}
	for n := range p.orders {
		o := &p.orders[n]
		if o.Recipe.Build != nil {
			continue // what it is built from, the catalogue, the checksum database or an archive's signature says
		}
		o.Locked, o.Recipe.Download = true, slices.Clone(o.Recipe.Download)
		for n := range o.Recipe.Download {
			f := &o.Recipe.Download[n]
			at := slices.IndexFunc(p.pins.lock.Downloads, func(is LockedFile) bool { return is.URL == f.URL })
			switch {
			case at < 0 && p.pins.complete:
				p.pins.differs("%s: it is not in the lock file", f.URL)
			case at >= 0 && f.SHA256 != "" && f.SHA256 != p.pins.lock.Downloads[at].SHA256:
				p.pins.differs("%s: the catalogue wants sha256 %s, and the lock file has %s", f.URL, f.SHA256, p.pins.lock.Downloads[at].SHA256)
			case at >= 0:
				f.SHA256 = p.pins.lock.Downloads[at].SHA256
			default:
				var err error
				if f.SHA256, err = p.maker.fetcher.Sum(ctx, *f); err != nil {
					return err
				}
			}
			f.SHA256URL = "" // it is known
		}
	}
	return p.pins.err()
}

// compare compares what was made with the lock. What that lacked is in opts.Lock then.
func (p *production) compare(m Manifest) error {
	if p.pins == nil {
		return nil
	}
	for _, o := range p.orders {
		for _, f := range p.components[keyOfOrder(o)].Downloads {
			p.pins.file(&p.pins.lock.Downloads, urlOf, f)
		}
	}
	for _, i := range m.Items {
		switch i.Kind {
		case KindImage:
			p.pins.image(LockedImage{Ref: i.Ref, Platform: i.Platform, Digest: i.Digest})
		case KindPackage:
			p.pins.file(&p.pins.lock.Packages, pathOf, LockedFile{Path: i.Path, Size: i.Size, SHA256: i.SHA256})
		default: // it was downloaded, or is built
		}
	}
	if err := p.pins.err(); err != nil {
		return err
	}
	l := &p.pins.lock
	slices.SortFunc(l.Downloads, func(a, b LockedFile) int { return cmp.Compare(a.URL, b.URL) })
	slices.SortFunc(l.Packages, func(a, b LockedFile) int { return cmp.Compare(a.Path, b.Path) })
	slices.SortFunc(l.Images, func(a, b LockedImage) int {
		return cmp.Or(cmp.Compare(a.Ref, b.Ref), cmp.Compare(a.Platform, b.Platform))
	})
	*p.opts.Lock = *l
	return nil
}
