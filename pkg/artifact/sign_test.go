// Copyright 2026 The cluster-api-provider-kubexm Authors.
// SPDX-License-Identifier: Apache-2.0

package artifact

import (
	"bytes"
	"crypto/ed25519"
	"encoding/json"
	"errors"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	spdxjson "github.com/spdx/tools-golang/json"
	"github.com/spdx/tools-golang/spdx/v2/v2_3"
	"golang.org/x/crypto/ssh"

	"github.com/mensylisir/cluster-api-provider-kubexm/pkg/artifact/oci"
)

// keyOfSeed is a key that is the same in every run, with its line of authorized_keys.
func keyOfSeed(t *testing.T, seed byte) (ssh.Signer, string) {
	t.Helper()
	signer, err := ssh.NewSignerFromKey(ed25519.NewKeyFromSeed(bytes.Repeat([]byte{seed}, ed25519.SeedSize)))
	if err != nil {
		t.Fatal(err)
	}
	return signer, string(ssh.MarshalAuthorizedKey(signer.PublicKey()))
}

func signersOf(t *testing.T, lines ...string) *Signers {
	t.Helper()
	s, err := ParseSigners([]byte("# who makes bundles\n\n" + strings.Join(lines, "")))
	if err != nil {
		t.Fatal(err)
	}
	return s
}

// A bundle is opened with a key where that key has signed it, and nothing of another one is unpacked.
func TestSignedBundles(t *testing.T) {
	ours, line := keyOfSeed(t, 1)
	_, others := keyOfSeed(t, 2)
	p := newPublisher(t)
	for _, name := range []string{"bundle", "bundle.tar", "bundle.tar.zst"} {
		t.Run(name, func(t *testing.T) {
			unsigned, signed := p.options(t, name), p.options(t, name)
			mustCreate(t, unsigned)
			signed.Signer = ours
			if b := mustCreate(t, signed); b.Verify(t.Context()) != nil {
				t.Errorf("a signed bundle is not whole: %v", b.Verify(t.Context()))
			}
			for what, test := range map[string]struct {
				path    string
				signers *Signers
				want    string
			}{
				"no key":           {signed.Out, nil, ""},
				"the key":          {signed.Out, signersOf(t, line), ""},
				"one of two":       {signed.Out, signersOf(t, others, line), ""},
				"another key":      {signed.Out, signersOf(t, others), "which is none of the keys"},
				"no signature":     {unsigned.Out, signersOf(t, line), "has no manifest.json.sig"},
				"nobody who cares": {unsigned.Out, nil, ""},
			} {
				store := openStore(t)
				b, err := OpenWith(t.Context(), test.path, OpenOptions{Store: store, Signers: test.signers})
				if test.want == "" {
					if err != nil || b.Verify(t.Context()) != nil {
						t.Errorf("%s: %v", what, err)
					}
					continue
				}
				var bad *SignatureError
				if !errors.As(err, &bad) || !strings.Contains(err.Error(), test.want) {
					t.Errorf("%s: got %v", what, err)
				}
				empty(t, filepath.Join(store.Root(), "bundles"))
				empty(t, filepath.Join(store.Root(), "work"))
			}
		})
	}
}

// What was unpacked when nobody asked for a signature is asked for it later.
func TestSignatureOfUnpacked(t *testing.T) {
	_, line := keyOfSeed(t, 1)
	opts := newPublisher(t).options(t, "bundle.tar")
	mustCreate(t, opts)
	store := openStore(t)
	if _, err := Open(t.Context(), opts.Out, store); err != nil {
		t.Fatal(err)
	}
	var bad *SignatureError
	if _, err := OpenWith(t.Context(), opts.Out, OpenOptions{Store: store, Signers: signersOf(t, line)}); !errors.As(err, &bad) {
		t.Errorf("got %v", err)
	}
}

// A manifest that was changed after it was signed, or a signature that was made for something else, is no bundle of the key's.
func TestSignatureOfSomethingElse(t *testing.T) {
	ours, line := keyOfSeed(t, 1)
	opts := newPublisher(t).options(t, "bundle")
	opts.Signer = ours
	mustCreate(t, opts)
	manifest := filepath.Join(opts.Out, ManifestName)
	data, err := os.ReadFile(manifest)
	if err != nil {
		t.Fatal(err)
	}
	refused := func(why string) {
		t.Helper()
		var bad *SignatureError
		if _, err := OpenWith(t.Context(), opts.Out, OpenOptions{Signers: signersOf(t, line)}); !errors.As(err, &bad) {
			t.Errorf("%s: got %v", why, err)
		}
	}
	if err := os.WriteFile(manifest, append(data, '\n'), 0o644); err != nil {
		t.Fatal(err)
	}
	refused("a changed manifest")
	if err := errors.Join(os.WriteFile(manifest, data, 0o644),
		os.WriteFile(filepath.Join(opts.Out, SignatureName), []byte("no signature"), 0o644)); err != nil {
		t.Fatal(err)
	}
	refused("no signature in the file")
	// Signed again, in the place where it is.
	mustCreate(t, opts)
	if _, err := OpenWith(t.Context(), opts.Out, OpenOptions{Signers: signersOf(t, line)}); err != nil {
		t.Error(err)
	}
}

// OpenSSH verifies what is signed here, and what OpenSSH signs is verified here.
func TestSignaturesAreOpenSSHs(t *testing.T) {
	ours, line := keyOfSeed(t, 1)
	opts := newPublisher(t).options(t, "bundle")
	opts.Signer = ours
	mustCreate(t, opts)
	manifest := filepath.Join(opts.Out, ManifestName)
	data, err := os.ReadFile(manifest)
	if err != nil {
		t.Fatal(err)
	}
	dir := t.TempDir()
	allowed := filepath.Join(dir, "allowed_signers")
	if err := os.WriteFile(allowed, []byte("release "+line), 0o644); err != nil {
		t.Fatal(err)
	}
	verify := exec.Command("ssh-keygen", "-Y", "verify", "-f", allowed, "-I", "release",
		"-n", SignatureNamespace, "-s", filepath.Join(opts.Out, SignatureName))
	verify.Stdin = bytes.NewReader(data)
	if out, err := verify.CombinedOutput(); err != nil {
		t.Errorf("%v: %s", err, out)
	}

	key := filepath.Join(dir, "id_ed25519")
	for _, argv := range [][]string{
		{"ssh-keygen", "-q", "-t", "ed25519", "-N", "", "-f", key},
		{"rm", filepath.Join(opts.Out, SignatureName)},
		{"ssh-keygen", "-q", "-Y", "sign", "-n", SignatureNamespace, "-f", key, manifest},
	} {
		if out, err := exec.Command(argv[0], argv[1:]...).CombinedOutput(); err != nil {
			t.Fatalf("%v: %v: %s", argv, err, out)
		}
	}
	signers, err := ReadSigners(key + ".pub")
	if err != nil {
		t.Fatal(err)
	}
	if _, err := OpenWith(t.Context(), opts.Out, OpenOptions{Signers: signers}); err != nil {
		t.Error(err)
	}
}

func TestParseSignersRefuses(t *testing.T) {
	_, line := keyOfSeed(t, 1)
	for name, test := range map[string]struct{ data, want string }{
		"nothing":       {"# none\n", "no public SSH key"},
		"something":     {"hello", "line 1 is no public SSH key"},
		"one bad line":  {line + "ssh-ed25519 AAAA", "line 2 is no public SSH key"},
		"an allowed IP": {`from="10.0.0.1" ` + line, "line 1: a key has no options here"},
	} {
		if _, err := ParseSigners([]byte(test.data)); err == nil || !strings.Contains(err.Error(), test.want) {
			t.Errorf("%s: got %v", name, err)
		}
	}
}

// The bill of materials has every item with its version, digest and source, and is itself one of the files that the manifest lists.
func TestSBOM(t *testing.T) {
	opts := newPublisher(t).options(t, "bundle")
	b := mustCreate(t, opts)
	path := filepath.Join(b.Dir(), SBOMName)
	data, err := os.ReadFile(path)
	if err != nil {
		t.Fatal(err)
	}
	if m := b.Manifest(); m.SBOM == nil || *m.SBOM != oci.BlobOf(data) {
		t.Errorf("the manifest lists %v", m.SBOM)
	}
	doc, err := spdxjson.Read(bytes.NewReader(data))
	if err != nil {
		t.Fatal(err)
	}
	for _, i := range b.Manifest().Items {
		at := slices.IndexFunc(doc.Packages, func(p *v2_3.Package) bool { return p.PackageFileName == i.Path && p.PackageName == i.Name })
		if at < 0 {
			t.Errorf("%s is not in it", i.Path)
			continue
		}
		p := doc.Packages[at]
		if p.PackageVersion != i.Version || p.PackageChecksums[0].Value != i.SHA256 || p.PackageSourceInfo != i.Source {
			t.Errorf("%s is in it as %+v", i.Path, p)
		}
	}
	if len(doc.Packages) != len(b.Manifest().Items) || !json.Valid(data) {
		t.Errorf("it has %d packages of %d", len(doc.Packages), len(b.Manifest().Items))
	}
	flip(t, path)
	var bad *VerifyError
	if err := b.Verify(t.Context()); !errors.As(err, &bad) || bad.Problems[0].Path != SBOMName {
		t.Errorf("got %v", err)
	}
}
