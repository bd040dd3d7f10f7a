// Copyright 2026 The cluster-api-provider-kubexm Authors.
// SPDX-License-Identifier: Apache-2.0

package backup

import (
	"context"
	"crypto/sha256"
	"encoding/hex"
	"errors"
	"fmt"
	"io"
	"net"
	"net/http"
	"strconv"
	"strings"
	"time"

	"github.com/minio/minio-go/v7"

	"github.com/mensylisir/cluster-api-provider-kubexm/pkg/host"
)

// Source is where a backup lies that is restored from there, without a copy on this machine.
type Source interface {
	// Manifest is what is said of the snapshot. The whole snapshot is read, and verified to be that.
	Manifest(ctx context.Context) (Manifest, error)
	// Open is the snapshot, from its start. Whoever it is sent to verifies it.
	Open(ctx context.Context) (io.ReadCloser, error)
}

// OnHost is a backup on a host.
type OnHost struct {
	Dial func(context.Context) (host.Host, error)
	// Path is the snapshot's on the host, with the ending .db.
	Path string
}

// Manifest reads the manifest beside the snapshot, and has the host compute the snapshot's sum.
func (s OnHost) Manifest(ctx context.Context) (m Manifest, err error) {
	h, err := s.Dial(ctx)
	if err != nil {
		return m, err
	}
	defer func() { err = errors.Join(err, h.Close()) }()
	at := strings.TrimSuffix(s.Path, snapshotEnding) + manifestEnding
	text, err := read(ctx, h, "head", "-c", strconv.Itoa(maxManifest), "--", at)
	if err != nil {
		return m, fmt.Errorf("nothing says whose snapshot %s is: %w", s.Path, err)
	}
	if m, err = parse(text); err != nil {
		return m, fmt.Errorf("host %s: %s: %w", h.Name(), at, err)
	}
	size, err := read(ctx, h, "stat", "-Lc", "%s", "--", s.Path)
	if err != nil {
		return m, err
	}
	sum, err := read(ctx, h, "sha256sum", "--", s.Path)
	if err != nil {
		return m, err
	}
	got, _, _ := strings.Cut(strings.TrimPrefix(string(sum), `\`), " ")
	if is := strings.TrimSpace(string(size)); is != strconv.FormatInt(m.Size, 10) || got != m.SHA256 {
		return m, fmt.Errorf("host %s: %s is damaged: it has %s bytes with the sum %s, and %s says %d and %s", h.Name(), s.Path,
			host.Text(is, 30), host.Text(got, 64), at, m.Size, m.SHA256)
	}
	return m, nil
}

// Open reads it a part at a time, so that neither side has all of it in memory.
func (s OnHost) Open(ctx context.Context) (io.ReadCloser, error) {
	h, err := s.Dial(ctx)
	if err != nil {
		return nil, err
	}
	return &stream{ctx: ctx, host: h, path: s.Path}, nil
}

// stream is a file of a host.
type stream struct {
	ctx  context.Context
	host host.Host
	path string
	// at is how many parts were read, and left what was not given away yet of the last one.
	at   int64
	left []byte
	last bool
}

// Read reads the next part from the host when all of the last one was given away.
func (s *stream) Read(p []byte) (int, error) {
	if len(s.left) == 0 {
		if s.last {
			return 0, io.EOF
		}
		part, err := readPart(s.ctx, s.host, s.path, s.at)
		if err != nil {
			return 0, err
		}
		s.at, s.left, s.last = s.at+1, part, len(part) < chunk
	}
	n := copy(p, s.left)
	s.left = s.left[n:]
	if n == 0 && s.last {
		return 0, io.EOF
	}
	return n, nil
}

// Close ends the connection.
func (s *stream) Close() error { return s.host.Close() }

// readPart is a part of a file, shorter than chunk where it is the last one.
func readPart(ctx context.Context, h host.Host, path string, at int64) ([]byte, error) {
	return read(ctx, h, "dd", "if="+path, "bs="+strconv.Itoa(chunk), "count=1", "skip="+strconv.FormatInt(at, 10), "status=none")
}

// InBucket is a backup in a bucket.
type InBucket struct {
	Bucket *Bucket
	// Name is the backup's, without an ending.
	Name string
}

// Manifest reads all of it from the object store.
func (s InBucket) Manifest(ctx context.Context) (Manifest, error) {
	m, err := s.Bucket.manifest(ctx, s.Name)
	if err != nil {
		return m, err
	}
	sum := sha256.New()
	if err := s.Bucket.read(ctx, s.Name+snapshotEnding, sum); err != nil {
		return m, err
	}
	if got := hex.EncodeToString(sum.Sum(nil)); got != m.SHA256 {
		return m, s.Bucket.fail(fmt.Errorf("it has the sum %s, and should have %s: it is damaged there", got, m.SHA256), s.Name+snapshotEnding)
	}
	return m, nil
}

// Open is the object's content.
func (s InBucket) Open(ctx context.Context) (io.ReadCloser, error) {
	return s.Bucket.open(ctx, s.Name+snapshotEnding)
}

// Wanted is what a backup must be of to be restored into a cluster.
type Wanted struct {
	// Cluster is the cluster's name, Authority the fingerprint of its certificate authority, and KubernetesVersion its version.
	Cluster, Authority, KubernetesVersion string
	// OfCluster is the name of the cluster whose backup is meant although it is another one or had another authority, "" if none is.
	OfCluster string
	// Override is what says OfCluster, for messages.
	Override string
	// NotBefore is the oldest time that it may be of; the zero time is any.
	NotBefore time.Time
}

// Fits returns why the backup is not one to be restored there, nil if it is.
func (m Manifest) Fits(w Wanted) error {
	switch {
	case w.OfCluster != "" && w.OfCluster != m.Cluster:
		return fmt.Errorf("it is of cluster %s, and %s says %s", m.Cluster, w.Override, w.OfCluster)
	case w.OfCluster == "" && m.Cluster != w.Cluster:
		return fmt.Errorf("it is of cluster %s, not of %s. If that is meant, say so: %s %s", m.Cluster, w.Cluster, w.Override, m.Cluster)
	case w.OfCluster == "" && m.Authority != w.Authority:
		return fmt.Errorf("it is of a cluster %s with the certificate authority %s, and this one has %s: service accounts' tokens and "+
			"encrypted Secrets in it may be of no use here. If it is meant, say so: %s %s", m.Cluster, m.Authority, w.Authority, w.Override, m.Cluster)
	case !w.NotBefore.IsZero() && m.Time.Before(w.NotBefore):
		return fmt.Errorf("it was saved at %s, and what was written since %s at the latest is not to be lost",
			m.Time.UTC().Format(time.RFC3339), w.NotBefore.UTC().Format(time.RFC3339))
	}
	return sameMinor(m.KubernetesVersion, w.KubernetesVersion)
}

// IsLasting reports whether reading a backup again would fail in the same way: what was asked has answered.
func IsLasting(err error) bool {
	var onHost *host.Error
	if errors.As(err, &onHost) {
		return !onHost.Kind.Retryable()
	}
	var unreached net.Error
	if errors.As(err, &unreached) || errors.Is(err, context.DeadlineExceeded) || errors.Is(err, context.Canceled) ||
		errors.Is(err, io.ErrUnexpectedEOF) { // the answer was cut
		return false
	}
	var refused minio.ErrorResponse
	if !errors.As(err, &refused) {
		return true
	}
	// AWS says 400 where it has waited too long.
	return refused.StatusCode < http.StatusInternalServerError && refused.StatusCode != http.StatusTooManyRequests &&
		refused.StatusCode != http.StatusRequestTimeout && refused.Code != "RequestTimeout"
}
