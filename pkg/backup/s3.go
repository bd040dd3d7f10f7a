// Copyright 2026 The cluster-api-provider-kubexm Authors.
// SPDX-License-Identifier: Apache-2.0

package backup

import (
	"bytes"
	"cmp"
	"context"
	"crypto/sha256"
	"crypto/tls"
	"crypto/x509"
	"encoding/hex"
	"errors"
	"fmt"
	"io"
	"net/http"
	"net/url"
	"os"
	"path"
	"slices"
	"strings"
	"time"

	"github.com/minio/minio-go/v7"
	"github.com/minio/minio-go/v7/pkg/credentials"

	"github.com/mensylisir/cluster-api-provider-kubexm/pkg/secret"
)

// Scheme is what a place in a bucket begins with: s3://BUCKET/PREFIX.
const Scheme = "s3://"

// Bucket is a place for backups in an object store that speaks S3: the files of a directory, below a prefix.
type Bucket struct {
	client       *minio.Client
	name, prefix string
}

// BucketOptions are how an object store is reached. Unless Keys are set, the keys are those that AWS's own programs use, in the environment
// (AWS_ACCESS_KEY_ID, AWS_SECRET_ACCESS_KEY, AWS_SESSION_TOKEN) or in the file of credentials.
type BucketOptions struct {
	// Endpoint is its URL, with https. "" is that of AWS.
	Endpoint string
	// Region is the bucket's. "" is us-east-1, which other stores take for their only one.
	Region string
	// Authorities is a file with the certificates by which the endpoint is trusted, in PEM. "" is what this machine trusts.
	Authorities string
	// Trusted are such certificates themselves, in PEM. If there are any, they count instead.
	Trusted []byte
	// Keys are those that somebody else than this machine's environment and files says. If they are set, they count instead.
	Keys Keys
}

// Keys are how an object store knows who asks.
type Keys struct {
	// ID is the access key, and Secret its secret. Token is that of a session, "" if it is none.
	ID            string
	Secret, Token secret.Value
}

// credentials are the keys that are set, or those of this machine.
func (o *BucketOptions) credentials() *credentials.Credentials {
	if o.Keys.ID != "" {
		return credentials.NewStaticV4(o.Keys.ID, string(o.Keys.Secret.Reveal()), string(o.Keys.Token.Reveal()))
	}
	return credentials.NewChainCredentials([]credentials.Provider{&credentials.EnvAWS{}, &credentials.FileAWSCredentials{}})
}

// OpenBucket is the bucket at s3://BUCKET/PREFIX. It does not connect yet.
func OpenBucket(at string, o BucketOptions) (*Bucket, error) {
	u, err := url.Parse(at)
	if err != nil || u.Scheme+"://" != Scheme || u.Host == "" || u.User != nil || u.RawQuery != "" || u.Fragment != "" {
		return nil, fmt.Errorf("%s is no place in a bucket: write %sBUCKET/PREFIX", at, Scheme)
	}
	endpoint, err := url.Parse(cmp.Or(o.Endpoint, "https://s3.amazonaws.com"))
	if err != nil || endpoint.Host == "" || strings.Trim(endpoint.Path, "/") != "" || endpoint.User != nil {
		return nil, fmt.Errorf("%s is no URL of an object store, such as https://s3.example:9000", o.Endpoint)
	}
	if endpoint.Scheme != "https" {
		return nil, fmt.Errorf("%s would have all Secrets of the cluster cross the network in clear: use https", o.Endpoint)
	}
	transport, err := minio.DefaultTransport(true)
	if err != nil {
		return nil, err
	}
	trusted, name := o.Trusted, "what is to be trusted"
	if o.Authorities != "" && len(trusted) == 0 {
		name = o.Authorities
		if trusted, err = os.ReadFile(name); err != nil {
			return nil, err
		}
	}
	if name == o.Authorities || len(trusted) > 0 {
		if transport.TLSClientConfig, err = trusting(trusted, name); err != nil {
			return nil, err
		}
	}
	client, err := minio.New(endpoint.Host, &minio.Options{
		Creds: o.credentials(),
		// Stores beside AWS's have no name for each bucket.
		Secure: true, Region: cmp.Or(o.Region, "us-east-1"), Transport: transport, BucketLookup: lookup(o.Endpoint),
	})
	if err != nil {
		return nil, err
	}
	return &Bucket{client, u.Host, strings.Trim(u.Path, "/")}, nil
}

func lookup(endpoint string) minio.BucketLookupType {
	if endpoint == "" {
		return minio.BucketLookupDNS
	}
	return minio.BucketLookupPath
}

func trusting(text []byte, name string) (*tls.Config, error) {
	pool := x509.NewCertPool()
	if !pool.AppendCertsFromPEM(text) {
		return nil, fmt.Errorf("%s has no certificate in PEM", name)
	}
	return &tls.Config{RootCAs: pool, MinVersion: tls.VersionTLS12}, nil
}

// String is the place, for people.
func (b *Bucket) String() string { return Scheme + path.Join(b.name, b.prefix) }

func (b *Bucket) key(name string) string { return path.Join(b.prefix, name) }

// fail says where it failed.
func (b *Bucket) fail(err error, name string) error {
	return fmt.Errorf("%s at %s: %w", Scheme+path.Join(b.name, b.key(name)), b.client.EndpointURL().Host, err)
}

// authority is what a snapshot's object says of whose it is, so that one without a manifest is known.
const authority = "Kubexm-Authority"

// Put uploads a backup of this machine. It counts as there when its manifest is, which comes last, once the snapshot was read back and is
// the same.
func (b *Bucket) Put(ctx context.Context, of Backup) error {
	db, manifest := of.Name+snapshotEnding, of.Name+manifestEnding
	text, err := os.ReadFile(strings.TrimSuffix(of.Path, snapshotEnding) + manifestEnding)
	if err != nil {
		return err
	}
	// Parts of an upload of the same name that was cut.
	if err := b.client.RemoveIncompleteUpload(ctx, b.name, b.key(db)); err != nil && !isAbsent(err) {
		return b.fail(err, db)
	}
	_, err = b.client.FPutObject(ctx, b.name, b.key(db), of.Path, minio.PutObjectOptions{
		ContentType: "application/octet-stream", UserMetadata: map[string]string{authority: of.Authority},
	})
	if err != nil {
		return b.fail(err, db)
	}
	sum := sha256.New()
	if err := b.read(ctx, db, sum); err != nil {
		return err
	}
	if got := hex.EncodeToString(sum.Sum(nil)); got != of.SHA256 {
		return b.fail(fmt.Errorf("it is stored with the sum %s, and should have %s: it is damaged there", got, of.SHA256), db)
	}
	_, err = b.client.PutObject(ctx, b.name, b.key(manifest), bytes.NewReader(text), int64(len(text)), minio.PutObjectOptions{
		ContentType: "application/json",
	})
	if err != nil {
		return b.fail(err, manifest)
	}
	return nil
}

// Get downloads a backup to a directory of this machine, and verifies it.
func (b *Bucket) Get(ctx context.Context, name, dir string) (Backup, error) {
	var text bytes.Buffer
	if err := b.read(ctx, name+manifestEnding, &limited{&text, maxManifest}); err != nil {
		return Backup{}, err
	}
	return take(b.String(), dir, name, text.Bytes(), func(w io.Writer, _ int64) error { return b.read(ctx, name+snapshotEnding, w) })
}

// maxManifest is more than any manifest has.
const maxManifest = 64 << 10

// limited is a buffer that takes no more than left bytes.
type limited struct {
	*bytes.Buffer
	left int
}

// Write takes what there is room for.
func (l *limited) Write(p []byte) (int, error) {
	if l.left -= len(p); l.left < 0 {
		return 0, errors.New("it is too large for a manifest")
	}
	return l.Buffer.Write(p)
}

// open is an object's content.
func (b *Bucket) open(ctx context.Context, name string) (io.ReadCloser, error) {
	o, err := b.client.GetObject(ctx, b.name, b.key(name), minio.GetObjectOptions{})
	if err != nil {
		return nil, b.fail(err, name)
	}
	return o, nil
}

// manifest is that of a backup.
func (b *Bucket) manifest(ctx context.Context, name string) (Manifest, error) {
	var text bytes.Buffer
	if err := b.read(ctx, name+manifestEnding, &limited{&text, maxManifest}); err != nil {
		return Manifest{}, fmt.Errorf("nothing says whose snapshot %s is: %w", name+snapshotEnding, err)
	}
	m, err := parse(text.Bytes())
	if err != nil {
		return m, b.fail(err, name+manifestEnding)
	}
	return m, nil
}

func (b *Bucket) read(ctx context.Context, name string, w io.Writer) error {
	o, err := b.open(ctx, name)
	if err != nil {
		return err
	}
	defer func() { _ = o.Close() }() // only read
	if _, err := io.Copy(w, o); err != nil {
		return b.fail(err, name)
	}
	return nil
}

// List are the backups that are whole, the newest first.
func (b *Bucket) List(ctx context.Context) ([]Backup, error) {
	all, _, err := b.list(ctx)
	return all, err
}

// list are the backups that are whole, and the snapshots that have no manifest.
func (b *Bucket) list(ctx context.Context) (whole []Backup, alone []minio.ObjectInfo, err error) {
	found := map[string]minio.ObjectInfo{}
	prefix := b.key("etcd-")
	for o := range b.client.ListObjects(ctx, b.name, minio.ListObjectsOptions{Prefix: prefix}) {
		if o.Err != nil {
			return nil, nil, b.fail(o.Err, "")
		}
		found[path.Base(o.Key)] = o
	}
	for base, o := range found {
		name, is := strings.CutSuffix(base, snapshotEnding)
		if !is {
			continue
		}
		if _, there := found[name+manifestEnding]; !there {
			alone = append(alone, o)
			continue
		}
		var text bytes.Buffer
		if err := b.read(ctx, name+manifestEnding, &limited{&text, maxManifest}); err != nil {
			return nil, nil, err
		}
		m, err := parse(text.Bytes())
		if err != nil || m.Size != o.Size {
			continue // of somebody else, or not whole
		}
		whole = append(whole, Backup{Manifest: m, Name: name, Path: Scheme + path.Join(b.name, o.Key)})
	}
	slices.SortFunc(whole, func(a, b Backup) int { return b.Time.Compare(a.Time) })
	return whole, alone, nil
}

// abandoned is after how long a snapshot without a manifest counts as left by an upload that was cut.
const abandoned = 24 * time.Hour

// Prune removes all but the newest backups of a cluster, keep 0 none of them, and snapshots of the cluster's that an upload which was cut
// has left. The backup with the name saved, which was just stored, is one of those that stay. Others' stay.
func (b *Bucket) Prune(ctx context.Context, cluster, of, saved string, keep int) error {
	all, alone, err := b.list(ctx)
	if err != nil {
		return err
	}
	var failed error
	remove := func(name string) {
		if err := b.client.RemoveObject(ctx, b.name, b.key(name), minio.RemoveObjectOptions{}); err != nil {
			failed = errors.Join(failed, b.fail(err, name))
		}
	}
	for _, o := range alone {
		if time.Since(o.LastModified) < abandoned || !strings.HasPrefix(path.Base(o.Key), "etcd-"+cluster+"-") {
			continue
		}
		is, err := b.client.StatObject(ctx, b.name, o.Key, minio.StatObjectOptions{})
		if err != nil && !isAbsent(err) {
			failed = errors.Join(failed, b.fail(err, path.Base(o.Key)))
		} else if err == nil && is.UserMetadata[authority] == of {
			remove(path.Base(o.Key))
		}
	}
	for _, old := range surplus(all, cluster, of, saved, keep) {
		remove(old.Name + manifestEnding) // first, so that half of one does not count
		remove(old.Name + snapshotEnding)
	}
	return failed
}

func isAbsent(err error) bool { return minio.ToErrorResponse(err).StatusCode == http.StatusNotFound }

// Split takes the place and the name of the backup out of s3://BUCKET/PREFIX/NAME.db.
func Split(at string) (place, name string, err error) {
	name, is := strings.CutSuffix(path.Base(at), snapshotEnding)
	place = strings.TrimSuffix(at, "/"+path.Base(at))
	if !is || !strings.HasPrefix(place, Scheme) || len(place) == len(Scheme) {
		return "", "", fmt.Errorf("%s is no backup in a bucket: write %sBUCKET/PREFIX/NAME%s", at, Scheme, snapshotEnding)
	}
	return place, name, nil
}
