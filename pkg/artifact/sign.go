// Copyright 2026 The cluster-api-provider-kubexm Authors.
// SPDX-License-Identifier: Apache-2.0

package artifact

import (
	"bytes"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"os"
	"strings"

	"github.com/hiddeco/sshsig"
	"golang.org/x/crypto/ssh"
)

// SignatureName is the path in a bundle of its manifest's signature, where "ssh-keygen -Y sign" puts it.
const SignatureName = ManifestName + ".sig"

// SignatureNamespace is what a signature is for ("ssh-keygen -Y sign -n"), so that one that was made for something else is not taken.
const SignatureNamespace = "kubexm-bundle"

// maxSignature bounds what is read into memory.
const maxSignature = 64 << 10

// Signers are the public keys one of which must have signed a bundle. A nil *Signers asks for no signature.
type Signers struct{ keys []ssh.PublicKey }

// ReadSigners reads public keys from a file as ParseSigners does. An empty path is nil.
func ReadSigners(path string) (*Signers, error) {
	if path == "" {
		return nil, nil
	}
	data, err := os.ReadFile(path)
	if err != nil {
		return nil, fmt.Errorf("keys of bundles: %w", err)
	}
	s, err := ParseSigners(data)
	if err != nil {
		return nil, fmt.Errorf("keys of bundles: %s: %w", path, err)
	}
	return s, nil
}

// ParseSigners reads public keys, one in each line as in ~/.ssh/id_ed25519.pub. Empty lines, and lines that begin with #, are passed over.
func ParseSigners(data []byte) (*Signers, error) {
	s := &Signers{}
	for n, line := range strings.Split(string(data), "\n") {
		if line = strings.TrimSpace(line); line == "" || strings.HasPrefix(line, "#") {
			continue
		}
		key, _, options, _, err := ssh.ParseAuthorizedKey([]byte(line))
		switch {
		case err != nil:
			return nil, fmt.Errorf("line %d is no public SSH key: %w", n+1, err)
		case len(options) > 0:
			return nil, fmt.Errorf("line %d: a key has no options here: give the key alone", n+1)
		}
		s.keys = append(s.keys, key)
	}
	if len(s.keys) == 0 {
		return nil, errors.New("there is no public SSH key in it")
	}
	return s, nil
}

// Signer is a private key that bundles are signed with.
type Signer = ssh.Signer

// ErrPassphrase is a private key that cannot be read without its passphrase.
var ErrPassphrase = errors.New("the key has a passphrase")

// ParseSigner reads a private key as ssh-keygen writes it. Errors: ErrPassphrase.
func ParseSigner(data []byte) (Signer, error) {
	signer, err := ssh.ParsePrivateKey(data)
	var locked *ssh.PassphraseMissingError
	if errors.As(err, &locked) {
		return nil, ErrPassphrase
	}
	if err != nil {
		return nil, errors.New("it is no private SSH key") // what it is instead may be a secret
	}
	return signer, nil
}

// SignatureError is a bundle that none of the keys has signed.
type SignatureError struct {
	// Reason says why, such as that there is no signature.
	Reason string
}

func (e *SignatureError) Error() string {
	return fmt.Sprintf("the signature is not one that is trusted: %s. Nothing was taken from it: take a bundle that one of the keys has signed, "+
		"or sign this one: ssh-keygen -Y sign -n %s -f KEY %s", e.Reason, SignatureNamespace, ManifestName)
}

// verify reports whether one of the keys has signed the manifest.
func (s *Signers) verify(manifest, signature []byte) error {
	if s == nil {
		return nil
	}
	if len(signature) == 0 {
		return &SignatureError{Reason: "the bundle has no " + SignatureName}
	}
	parsed, err := sshsig.Unarmor(signature)
	if err != nil {
		return &SignatureError{Reason: SignatureName + ": " + err.Error()}
	}
	by := parsed.PublicKey.Marshal()
	for _, key := range s.keys {
		if !bytes.Equal(key.Marshal(), by) {
			continue
		}
		if err := sshsig.Verify(bytes.NewReader(manifest), parsed, key, parsed.HashAlgorithm, SignatureNamespace); err != nil {
			return &SignatureError{Reason: err.Error()}
		}
		return nil
	}
	return &SignatureError{Reason: "it was signed by " + ssh.FingerprintSHA256(parsed.PublicKey) + ", which is none of the keys"}
}

// sign is what "ssh-keygen -Y sign -n kubexm-bundle" gives for a manifest.
func sign(manifest []byte, signer Signer) ([]byte, error) {
	signature, err := sshsig.Sign(bytes.NewReader(manifest), signer, sshsig.HashSHA512, SignatureNamespace)
	if err != nil {
		return nil, fmt.Errorf("sign %s: %w", ManifestName, err)
	}
	return sshsig.Armor(signature), nil
}

// readSignature reads the signature in a bundle's directory, nothing if there is none.
func readSignature(dir string) ([]byte, error) {
	f, err := openInside(dir, SignatureName)
	if errors.Is(err, fs.ErrNotExist) {
		return nil, nil
	}
	if err != nil {
		return nil, err
	}
	signature, err := limited(f, maxSignature)
	return signature, errors.Join(err, f.Close())
}

// limited reads all of r, which must not be longer than most.
func limited(r io.Reader, most int64) ([]byte, error) {
	data, err := io.ReadAll(io.LimitReader(r, most+1))
	if err == nil && int64(len(data)) > most {
		err = fmt.Errorf("it is larger than %d bytes", most)
	}
	return data, err
}
