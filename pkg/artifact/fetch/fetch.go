// Copyright 2026 The cluster-api-provider-kubexm Authors.
// SPDX-License-Identifier: Apache-2.0

package fetch

import (
	"bufio"
	"context"
	"crypto/sha256"
	"encoding/hex"
	"errors"
	"fmt"
	"io"
	"maps"
	"net/http"
	"net/url"
	"os"
	"path"
	"regexp"
	"slices"
	"strings"
)

// File is a published file.
type File struct {
	URL string `json:"url"`
	// SHA256 is the file's sum in hexadecimal. Where SHA256URL is set too, both must say the same.
	SHA256 string `json:"sha256,omitempty"`
	// SHA256URL is where the publisher has the sum: the bare sum, or lines of sha256sum. It is always read from there and never
	// from a mirror, so that a mirror cannot vouch for itself.
	SHA256URL string `json:"sha256URL,omitempty"`
	// Name is the name of the file that comes out. For an archive it is not set.
	Name string `json:"name,omitempty"`
	// Extract says that the file is a tar archive (.tar.gz, .tgz or .tar) and which of its members (by path) are
	// taken out under which name.
	Extract map[string]string `json:"extract,omitempty"`
}

// Validate reports what cannot be fetched or verified.
func (f File) Validate() error {
	for _, u := range []string{f.URL, f.SHA256URL} {
		if u == "" {
			continue
		}
		if p, err := url.Parse(u); err != nil || p.Host == "" || (p.Scheme != "https" && p.Scheme != "http") {
			return fmt.Errorf("%q is not a URL", u)
		}
	}
	// What is pinned here may come by any way; a sum that is read from the network is as good as the way that it comes by.
	if f.SHA256 == "" && (strings.HasPrefix(f.URL, "http://") || strings.HasPrefix(f.SHA256URL, "http://")) {
		return fmt.Errorf("%s: http:// is for files whose sha256 is given: use https://", f.URL)
	}
	switch {
	case f.URL == "":
		return errors.New("url must not be empty")
	case f.SHA256 == "" && f.SHA256URL == "":
		return fmt.Errorf("%s: sha256, sha256URL or both must be set", f.URL)
	case f.SHA256 != "" && !isSum.MatchString(f.SHA256):
		return fmt.Errorf("%s: sha256 %q is not 64 hexadecimal digits", f.URL, f.SHA256)
	case (f.Name == "") == (len(f.Extract) == 0):
		return fmt.Errorf("%s: one of name and extract must be set", f.URL)
	}
	for _, name := range f.Names() {
		if name == "." || name == ".." || strings.ContainsAny(name, "/\\") {
			return fmt.Errorf("%s: %q is not the name of a file", f.URL, name)
		}
	}
	return nil
}

// Names are the names of the files that come out.
func (f File) Names() []string {
	if f.Name != "" {
		return []string{f.Name}
	}
	return slices.Sorted(maps.Values(f.Extract))
}

// Mirror serves what is published below From.
type Mirror struct {
	From string `json:"from"`
	To   string `json:"to"`
}

// SumError is a file whose content is not what it must be.
type SumError struct {
	URL, Want, Got string
}

func (e *SumError) Error() string {
	return fmt.Sprintf("%s: sha256 is %s, must be %s: the file was thrown away", e.URL, e.Got, e.Want)
}

// StatusError is an answer other than the file.
type StatusError struct {
	URL    string
	Status string
}

func (e *StatusError) Error() string { return fmt.Sprintf("GET %s: %s", e.URL, e.Status) }

// Fetcher downloads files. The zero value does so with http.DefaultClient from where they are published.
type Fetcher struct {
	Client  *http.Client
	Mirrors []Mirror
	// Insecure takes files by http:// too. Their sums, which then are all that keeps others from changing them, never come that way.
	Insecure bool
}

var isSum = regexp.MustCompile("^[0-9a-f]{64}$")

// Fetch leaves the verified file at dst and returns its sum. Until it is complete it grows at dst.part, from where an
// interrupted download goes on; a file with a wrong sum is removed. report, which may be nil, is notified of bytes done and
// bytes in all (0 while unknown).
func (f Fetcher) Fetch(ctx context.Context, file File, dst string, report func(done, total int64)) (string, error) {
	want, err := f.Sum(ctx, file)
	if err != nil {
		return "", err
	}
	from := f.mirrored(file.URL)
	part := dst + ".part"
	got, err := f.download(ctx, from, part, report)
	if err != nil {
		return "", err
	}
	if got != want {
		return "", errors.Join(&SumError{URL: from, Want: want, Got: got}, os.Remove(part))
	}
	return got, os.Rename(part, dst)
}

// Sum is the sum that a file must have. It is an error if the publisher's is not the one that is given.
func (f Fetcher) Sum(ctx context.Context, file File) (string, error) {
	if file.SHA256URL == "" {
		return file.SHA256, nil
	}
	published, err := f.publishedSum(ctx, file)
	if err == nil && file.SHA256 != "" && file.SHA256 != published {
		err = fmt.Errorf("%s: its publisher says that its sha256 is %s, and it must be %s: nothing was fetched", file.URL, published, file.SHA256)
	}
	return published, err
}

func (f Fetcher) mirrored(u string) string {
	for _, m := range f.Mirrors {
		if rest, ok := strings.CutPrefix(u, m.From); ok {
			return m.To + rest
		}
	}
	return u
}

// download continues part, or begins it anew when the server will not continue, and returns the sum of the whole.
func (f Fetcher) download(ctx context.Context, from, part string, report func(done, total int64)) (sum string, err error) {
	out, err := os.OpenFile(part, os.O_RDWR|os.O_CREATE, 0o644)
	if err != nil {
		return "", err
	}
	defer func() { err = errors.Join(err, out.Close()) }()
	h := sha256.New()
	have, err := io.Copy(h, out)
	if err != nil {
		return "", err
	}
	resp, err := f.get(ctx, from, have)
	if err != nil {
		return "", err
	}
	defer resp.Body.Close()
	switch resp.StatusCode {
	case http.StatusRequestedRangeNotSatisfiable: // nothing is left to fetch; the sum tells whether it is right
		return hex.EncodeToString(h.Sum(nil)), nil
	case http.StatusOK: // the whole file
		have = 0
		h.Reset()
		if err := errors.Join(out.Truncate(0), seekStart(out)); err != nil {
			return "", err
		}
	}
	total := int64(0)
	if resp.ContentLength > 0 {
		total = have + resp.ContentLength
	}
	w := io.MultiWriter(out, h, &meter{done: have, total: total, report: report})
	if _, err := io.Copy(w, resp.Body); err != nil {
		return "", fmt.Errorf("GET %s: %w", from, err)
	}
	return hex.EncodeToString(h.Sum(nil)), out.Sync()
}

func seekStart(f *os.File) error {
	_, err := f.Seek(0, io.SeekStart)
	return err
}

func (f Fetcher) get(ctx context.Context, from string, offset int64) (*http.Response, error) {
	req, err := http.NewRequestWithContext(ctx, http.MethodGet, from, nil)
	if err != nil {
		return nil, err
	}
	if offset > 0 {
		req.Header.Set("Range", fmt.Sprintf("bytes=%d-", offset))
	}
	client := http.DefaultClient
	if f.Client != nil {
		client = f.Client
	}
	switch {
	case req.URL.Scheme == "https":
		client = secured(client)
	case !f.Insecure:
		return nil, fmt.Errorf("GET %s: it is not https://, and was not asked for; --insecure takes what its sum identifies all the same", from)
	}
	resp, err := client.Do(req)
	if err != nil {
		return nil, err
	}
	ok := resp.StatusCode == http.StatusOK
	if offset > 0 {
		ok = ok || resp.StatusCode == http.StatusPartialContent || resp.StatusCode == http.StatusRequestedRangeNotSatisfiable
	}
	if !ok {
		return nil, errors.Join(&StatusError{URL: from, Status: resp.Status}, resp.Body.Close())
	}
	return resp, nil
}

// secured is a client that is not led from https:// to anything else.
func secured(client *http.Client) *http.Client {
	copied := *client
	next := client.CheckRedirect
	copied.CheckRedirect = func(req *http.Request, via []*http.Request) error {
		switch {
		case req.URL.Scheme != "https":
			return fmt.Errorf("it leads to %s, which is not https://", req.URL.Redacted())
		case next != nil:
			return next(req, via)
		case len(via) >= 10:
			return errors.New("it leads on and on")
		}
		return nil
	}
	return &copied
}

// publishedSum reads the publisher's checksum file.
func (f Fetcher) publishedSum(ctx context.Context, file File) (string, error) {
	resp, err := f.get(ctx, file.SHA256URL, 0)
	if err != nil {
		return "", err
	}
	defer resp.Body.Close()
	sum, err := findSum(io.LimitReader(resp.Body, 1<<20), path.Base(file.URL))
	if err != nil {
		return "", fmt.Errorf("checksum file %s: %w", file.SHA256URL, err)
	}
	return sum, nil
}

// findSum finds the sum of the named file in lines of sha256sum, or the one sum in a file that names none.
func findSum(r io.Reader, name string) (string, error) {
	var bare []string
	s := bufio.NewScanner(r)
	for s.Scan() {
		switch fields := strings.Fields(s.Text()); {
		case len(fields) == 0 || !isSum.MatchString(fields[0]):
		case len(fields) == 1:
			bare = append(bare, fields[0])
		case path.Base(strings.TrimPrefix(fields[1], "*")) == name:
			return fields[0], nil
		}
	}
	if err := s.Err(); err != nil {
		return "", err
	}
	if len(bare) == 1 {
		return bare[0], nil
	}
	return "", fmt.Errorf("no sha256 for %s in it", name)
}

// meter passes on how much went by, at most once per megabyte.
type meter struct {
	done, told, total int64
	report            func(done, total int64)
}

func (m *meter) Write(p []byte) (int, error) {
	m.done += int64(len(p))
	if m.report != nil && (m.done-m.told >= 1<<20 || m.done == m.total) {
		m.told = m.done
		m.report(m.done, m.total)
	}
	return len(p), nil
}
