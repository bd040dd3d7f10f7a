// Copyright 2026 The cluster-api-provider-kubexm Authors.
// SPDX-License-Identifier: Apache-2.0

//go:build s3

package backup_test

import (
	"cmp"
	"context"
	"crypto/ecdsa"
	"crypto/elliptic"
	"crypto/rand"
	"crypto/sha256"
	"crypto/x509"
	"encoding/hex"
	"encoding/pem"
	"errors"
	"fmt"
	"io"
	"math/big"
	"net"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/mensylisir/cluster-api-provider-kubexm/pkg/backup"
	"github.com/mensylisir/cluster-api-provider-kubexm/pkg/secret"
)

// objects is a real object store, whose objects are files: S3's protocol, TLS by a certificate of its own, and one pair of keys.
type objects struct {
	backup.BucketOptions
	// dir has a directory for each bucket.
	dir string
}

const (
	accessKey = "test-access-key"
	secretKey = "test-secret-key-of-forty-digits-0123456"
)

// startStore runs versitygw of the bundle (make artifacts-s3).
func startStore(t *testing.T) objects {
	t.Helper()
	found, err := filepath.Glob(filepath.Join(cmp.Or(os.Getenv("KUBEXM_BUNDLE_S3"), "../../build/bundle-s3"), "versitygw", "*", "*", "versitygw"))
	if err != nil || len(found) != 1 {
		t.Fatalf("there is no versitygw in the bundle, make artifacts-s3: %v, %v", found, err)
	}
	own := t.TempDir()
	s := objects{dir: filepath.Join(own, "objects")}
	if err := os.MkdirAll(filepath.Join(s.dir, "backups"), 0o700); err != nil {
		t.Fatal(err)
	}
	l, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	address := l.Addr().String()
	if err := l.Close(); err != nil {
		t.Fatal(err)
	}
	s.Endpoint, s.Authorities = "https://"+address, filepath.Join(own, "tls.crt")
	certificate(t, s.Authorities, filepath.Join(own, "tls.key"))
	log, err := os.Create(filepath.Join(own, "log"))
	if err != nil {
		t.Fatal(err)
	}
	cmd := exec.Command(found[0], "--port", address, "--cert", s.Authorities, "--key", filepath.Join(own, "tls.key"), "posix", s.dir)
	cmd.Env = append(os.Environ(), "ROOT_ACCESS_KEY="+accessKey, "ROOT_SECRET_KEY="+secretKey)
	cmd.Stdout, cmd.Stderr = log, log
	if err := cmd.Start(); err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() {
		_ = cmd.Process.Kill()
		_ = cmd.Wait()
	})
	t.Setenv("AWS_ACCESS_KEY_ID", accessKey)
	t.Setenv("AWS_SECRET_ACCESS_KEY", secretKey)
	for began := time.Now(); ; {
		if _, err := s.open(t).List(t.Context()); err == nil {
			return s
		} else if time.Since(began) > time.Minute {
			text, _ := os.ReadFile(log.Name())
			t.Fatalf("it does not answer: %v\n%s", err, text)
		}
		time.Sleep(100 * time.Millisecond) // until it listens
	}
}

func certificate(t *testing.T, crt, key string) {
	t.Helper()
	private, err := ecdsa.GenerateKey(elliptic.P256(), rand.Reader)
	if err != nil {
		t.Fatal(err)
	}
	of := &x509.Certificate{
		SerialNumber: big.NewInt(1), NotBefore: time.Now().Add(-time.Hour), NotAfter: time.Now().Add(time.Hour), IsCA: true,
		BasicConstraintsValid: true, IPAddresses: []net.IP{net.IPv4(127, 0, 0, 1)},
	}
	der, err := x509.CreateCertificate(rand.Reader, of, of, &private.PublicKey, private)
	if err != nil {
		t.Fatal(err)
	}
	pkcs8, err := x509.MarshalPKCS8PrivateKey(private)
	if err != nil {
		t.Fatal(err)
	}
	put(t, crt, string(pem.EncodeToMemory(&pem.Block{Type: "CERTIFICATE", Bytes: der})))
	put(t, key, string(pem.EncodeToMemory(&pem.Block{Type: "PRIVATE KEY", Bytes: pkcs8})))
}

func (s objects) open(t *testing.T) *backup.Bucket {
	t.Helper()
	b, err := backup.OpenBucket("s3://backups/prod", s.BucketOptions)
	if err != nil {
		t.Fatal(err)
	}
	return b
}

// saved is a backup in a directory.
func saved(t *testing.T, dir, cluster, authority string, hour int) backup.Backup {
	t.Helper()
	path := save(t, dir, cluster, authority, hour)
	all, err := backup.List(dir)
	if err != nil {
		t.Fatal(err)
	}
	return all[slices.IndexFunc(all, func(b backup.Backup) bool { return b.Path == path })]
}

// TestBucket stores backups, lists them, keeps as many as it should, and brings one back.
func TestBucket(t *testing.T) {
	s := startStore(t)
	b, from, to := s.open(t), t.TempDir(), filepath.Join(t.TempDir(), "to")
	for hour := range 4 {
		if err := b.Put(t.Context(), saved(t, from, "prod", "SHA256:a", hour)); err != nil {
			t.Fatal(err)
		}
	}
	first := saved(t, from, "prod", "SHA256:a", 0)
	if err := b.Put(t.Context(), first); err != nil { // done again
		t.Fatal(err)
	}
	for _, others := range []backup.Backup{saved(t, from, "prod", "SHA256:other", 10), saved(t, from, "test", "SHA256:a", 0)} {
		if err := b.Put(t.Context(), others); err != nil {
			t.Fatal(err)
		}
	}
	wantStored(t, b, "prod-20261123T100000Z prod-20261123T030000Z prod-20261123T020000Z prod-20261123T010000Z prod-20261123T000000Z test-20261123T000000Z")
	got, err := b.Get(t.Context(), first.Name, to)
	if err != nil {
		t.Fatal(err)
	}
	if m, err := backup.Read(got.Path); err != nil || m != first.Manifest {
		t.Errorf("%+v, %v", m, err)
	}
	const newest = "etcd-prod-20261123T030000Z-cp1"
	if err := b.Prune(t.Context(), "prod", "SHA256:a", newest, 0); err != nil {
		t.Fatal(err)
	}
	for range 2 {
		if err := b.Prune(t.Context(), "prod", "SHA256:a", newest, 2); err != nil {
			t.Fatal(err)
		}
	}
	wantStored(t, b, "prod-20261123T100000Z prod-20261123T030000Z prod-20261123T020000Z test-20261123T000000Z")
	if files := names(t, filepath.Join(s.dir, "backups", "prod")); len(files) != 8 {
		t.Errorf("the store has %v", files)
	}
	// What was just stored stays, although a clock was ahead when the others were saved.
	if err := b.Put(t.Context(), first); err != nil {
		t.Fatal(err)
	}
	if err := b.Prune(t.Context(), "prod", "SHA256:a", first.Name, 2); err != nil {
		t.Fatal(err)
	}
	wantStored(t, b, "prod-20261123T100000Z prod-20261123T030000Z prod-20261123T000000Z test-20261123T000000Z")
}

// TestInBucket reads a backup where it lies, with keys and an authority that are given, and not with this machine's.
func TestInBucket(t *testing.T) {
	s := startStore(t)
	b, first := s.open(t), saved(t, t.TempDir(), "prod", "SHA256:a", 0)
	if err := b.Put(t.Context(), first); err != nil {
		t.Fatal(err)
	}
	trusted, err := os.ReadFile(s.Authorities)
	if err != nil {
		t.Fatal(err)
	}
	t.Setenv("AWS_ACCESS_KEY_ID", "")
	t.Setenv("AWS_SECRET_ACCESS_KEY", "")
	by := func(key string) backup.InBucket {
		b, err := backup.OpenBucket("s3://backups/prod", backup.BucketOptions{
			Endpoint: s.Endpoint, Trusted: trusted, Keys: backup.Keys{ID: accessKey, Secret: secret.New([]byte(key))},
		})
		if err != nil {
			t.Fatal(err)
		}
		return backup.InBucket{Bucket: b, Name: first.Name}
	}
	if m, err := by(secretKey).Manifest(t.Context()); err != nil || m != first.Manifest {
		t.Errorf("%+v, %v", m, err)
	}
	r, err := by(secretKey).Open(t.Context())
	if err != nil {
		t.Fatal(err)
	}
	got, err := io.ReadAll(r)
	if err := errors.Join(err, r.Close()); err != nil || int64(len(got)) != first.Size {
		t.Errorf("it reads %d bytes of %d: %v", len(got), first.Size, err)
	}
	if _, err := by("another").Manifest(t.Context()); err == nil || !backup.IsLasting(err) || strings.Contains(err.Error(), "another") {
		t.Errorf("with another key: %v", err)
	}
	at := filepath.Join(s.dir, "backups", "prod", first.Name+".db")
	content, err := os.ReadFile(at)
	if err != nil {
		t.Fatal(err)
	}
	content[100] ^= 1
	put(t, at, string(content))
	if _, err := by(secretKey).Manifest(t.Context()); err == nil || !strings.Contains(err.Error(), "it is damaged there") {
		t.Errorf("a damaged one: %v", err)
	}
}

func wantStored(t *testing.T, b *backup.Bucket, want string) {
	t.Helper()
	all, err := b.List(t.Context())
	if err != nil {
		t.Fatal(err)
	}
	var got []string
	for _, one := range all {
		got = append(got, strings.TrimSuffix(strings.TrimPrefix(one.Name, "etcd-"), "-cp1"))
	}
	slices.Sort(got)
	words := strings.Fields(want)
	slices.Sort(words)
	if !slices.Equal(got, words) {
		t.Errorf("there are %v, want %v", got, words)
	}
}

// TestBucketIsCut: what is not whole is no backup, is replaced when it is done again, and goes when nobody has come back for a day.
func TestBucketIsCut(t *testing.T) {
	s := startStore(t)
	b, from, to := s.open(t), t.TempDir(), filepath.Join(t.TempDir(), "to")
	one := saved(t, from, "prod", "SHA256:a", 1)
	cut, cancel := context.WithCancel(t.Context())
	cancel()
	if err := b.Put(cut, one); !errors.Is(err, context.Canceled) {
		t.Errorf("cut before it began: %v", err)
	}
	wantStored(t, b, "")
	if err := b.Put(t.Context(), one); err != nil {
		t.Fatal(err)
	}
	stored := filepath.Join(s.dir, "backups", "prod")
	manifest := filepath.Join(stored, one.Name+".json")
	if err := os.Remove(manifest); err != nil { // as if it were cut before its last act
		t.Fatal(err)
	}
	wantStored(t, b, "")
	if _, err := b.Get(t.Context(), one.Name, to); err == nil || !strings.Contains(err.Error(), one.Name+".json") {
		t.Errorf("without a manifest: %v", err)
	}
	if err := b.Prune(t.Context(), "prod", "SHA256:a", one.Name, 1); err != nil || len(names(t, stored)) != 1 {
		t.Errorf("what is being uploaded is gone: %v", err)
	}
	if err := b.Put(t.Context(), one); err != nil {
		t.Fatal(err)
	}
	wantStored(t, b, "prod-20261123T010000Z")

	t.Log("damaged in the store")
	snapshot := filepath.Join(stored, one.Name+".db")
	content, err := os.ReadFile(snapshot)
	if err != nil {
		t.Fatal(err)
	}
	content[100] ^= 1
	put(t, snapshot, string(content))
	if _, err := b.Get(t.Context(), one.Name, to); err == nil || !strings.Contains(err.Error(), "it is damaged there") {
		t.Errorf("%v", err)
	}
	if left := names(t, to); len(left) > 0 {
		t.Errorf("of what is damaged there is %v", left)
	}

	t.Log("left for a day")
	if err := os.Remove(manifest); err != nil {
		t.Fatal(err)
	}
	old := time.Now().Add(-25 * time.Hour)
	if err := os.Chtimes(snapshot, old, old); err != nil {
		t.Fatal(err)
	}
	if err := b.Prune(t.Context(), "prod", "SHA256:other", one.Name, 1); err != nil || len(names(t, stored)) != 1 {
		t.Errorf("another cluster's is gone: %v", err)
	}
	if err := b.Prune(t.Context(), "prod", "SHA256:a", one.Name, 1); err != nil || len(names(t, stored)) != 0 {
		t.Errorf("it is there: %v, %v", names(t, stored), err)
	}
}

// TestBucketRefuses: other keys, a certificate that nobody vouches for, a bucket that is not there; and no key is in an error.
func TestBucketRefuses(t *testing.T) {
	s := startStore(t)
	one := saved(t, t.TempDir(), "prod", "SHA256:a", 1)
	refused := func(want string, at string, o backup.BucketOptions) {
		t.Helper()
		b, err := backup.OpenBucket(at, o)
		if err != nil {
			t.Fatal(err)
		}
		err = b.Put(t.Context(), one)
		if err == nil || !strings.Contains(err.Error(), want) ||
			!strings.Contains(err.Error(), at) || strings.Contains(err.Error(), secretKey) {
			t.Errorf("%v, want %q", err, want)
		}
	}
	refused("certificate signed by unknown authority", "s3://backups/prod", backup.BucketOptions{Endpoint: s.Endpoint})
	refused("bucket does not exist", "s3://none/prod", s.BucketOptions)
	t.Setenv("AWS_SECRET_ACCESS_KEY", "another")
	refused("signature", "s3://backups/prod", s.BucketOptions)
}

// TestBucketTakesParts: what is uploaded in several parts is the same afterwards.
func TestBucketTakesParts(t *testing.T) {
	s := startStore(t)
	from := t.TempDir()
	one := saved(t, from, "prod", "SHA256:a", 1)
	content := make([]byte, 40<<20+7)
	if _, err := rand.Read(content); err != nil {
		t.Fatal(err)
	}
	put(t, one.Path, string(content))
	sum := sha256.Sum256(content)
	manifest := strings.TrimSuffix(one.Path, ".db") + ".json"
	text, err := os.ReadFile(manifest)
	if err != nil {
		t.Fatal(err)
	}
	put(t, manifest,
		strings.NewReplacer(one.SHA256, hex.EncodeToString(sum[:]), fmt.Sprint(one.Size), fmt.Sprint(len(content))).Replace(string(text)))
	all, err := backup.List(from)
	if err != nil || len(all) != 1 {
		t.Fatalf("%v, %v", all, err)
	}
	b := s.open(t)
	if err := b.Put(t.Context(), all[0]); err != nil {
		t.Fatal(err)
	}
	wantStored(t, b, "prod-20261123T010000Z")
	got, err := b.Get(t.Context(), one.Name, t.TempDir())
	if err != nil || got.Size != int64(len(content)) {
		t.Errorf("%+v, %v", got, err)
	}
}
