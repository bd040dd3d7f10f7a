// Copyright 2026 The cluster-api-provider-kubexm Authors.
// SPDX-License-Identifier: Apache-2.0

// Package recovery reads a cluster's key pairs back from one of its control plane hosts, where all else that had them was lost.
package recovery

import (
	"bufio"
	"bytes"
	"context"
	_ "embed"
	"encoding/base64"
	"errors"
	"fmt"
	"slices"
	"strings"
	"time"

	"sigs.k8s.io/yaml"

	"github.com/mensylisir/cluster-api-provider-kubexm/pkg/host"
	"github.com/mensylisir/cluster-api-provider-kubexm/pkg/pki"
	"github.com/mensylisir/cluster-api-provider-kubexm/pkg/secret"
)

//go:embed read.sh
var script string

// timeout bounds the reading of one host's files.
const timeout = 30 * time.Second

// onHost says where a control plane host has a key pair, and certificates that the pair has signed. Both types of Kubernetes have them
// in the same places, below /etc/kubernetes/pki.
var onHost = map[string]struct {
	cert, key string
	signed    []string
}{
	pki.ClusterName:        {"ca.crt", "ca.key", []string{"apiserver.crt", "apiserver-kubelet-client.crt"}},
	pki.EtcdName:           {"etcd/ca.crt", "etcd/ca.key", []string{"apiserver-etcd-client.crt"}},
	pki.FrontProxyName:     {"front-proxy-ca.crt", "front-proxy-ca.key", []string{"front-proxy-client.crt"}},
	pki.ServiceAccountName: {"sa.pub", "sa.key", nil},
}

// Of the encryption key, relative to /etc/kubernetes/pki.
const (
	encryptionKey    = "../encryption/key"
	encryptionConfig = "../encryption/config.yaml"
)

// WrongError is why the key pairs of a host do not count that has all keys which were asked for: another host may have others, or none.
type WrongError struct{ Err error }

// Error is what is wrong, and on which host.
func (w *WrongError) Error() string { return w.Err.Error() }

// Unwrap is what is wrong.
func (w *WrongError) Unwrap() error { return w.Err }

// Read reads the key pairs with these names from a control plane host, in one exchange. It returns them only if each key belongs to
// its certificate, and each authority has signed the certificates that the host uses; if not, and all keys are there, the error is a
// *WrongError. The encryption key (pki.EncryptionName) is the one
// that the API server's configuration has, and stays zero where the host has none. Errors name files, never their content.
func Read(ctx context.Context, h host.Host, names []string) (pki.Authorities, error) {
	var wanted []string
	for _, name := range names {
		if name == pki.EncryptionName {
			wanted = append(wanted, encryptionKey, encryptionConfig)
			continue
		}
		wanted = append(wanted, onHost[name].cert, onHost[name].key)
		wanted = append(wanted, onHost[name].signed...)
	}
	files, err := readFiles(ctx, h, wanted)
	if err != nil {
		return pki.Authorities{}, err
	}
	found, err := authoritiesIn(files, names)
	if err == nil {
		return found, nil
	}
	err = fmt.Errorf("host %s: %w", h.Name(), err)
	for _, name := range names {
		if name != pki.EncryptionName && len(files[onHost[name].key]) == 0 {
			return pki.Authorities{}, err
		}
	}
	return pki.Authorities{}, &WrongError{err}
}

// authoritiesIn checks the key pairs with these names that are among the files.
func authoritiesIn(files map[string][]byte, names []string) (found pki.Authorities, err error) {
	for _, name := range names {
		if name == pki.EncryptionName {
			if found.Encryption, err = encryptionIn(files); err != nil {
				return pki.Authorities{}, fmt.Errorf("encryption key: %w", err)
			}
			continue
		}
		pair, err := pairIn(files, name)
		if err != nil {
			return pki.Authorities{}, fmt.Errorf("key pair %s: %w", name, err)
		}
		found.Set(name, pair)
	}
	return found, nil
}

// pairIn checks the key pair that is among the files.
func pairIn(files map[string][]byte, name string) (pki.KeyPair, error) {
	at := onHost[name]
	for _, file := range append([]string{at.cert, at.key}, at.signed...) {
		if len(files[file]) == 0 {
			return pki.KeyPair{}, fmt.Errorf("there is no /etc/kubernetes/pki/%s", file)
		}
	}
	pair := pki.KeyPair{Cert: files[at.cert], Key: secret.New(files[at.key])}
	if name == pki.ServiceAccountName {
		return pair, pair.CheckServiceAccountKeys()
	}
	if err := pair.CheckCA(time.Now()); err != nil {
		return pki.KeyPair{}, err
	}
	ca, err := pair.Certificate()
	if err != nil {
		return pki.KeyPair{}, err
	}
	for _, file := range at.signed {
		leaf, err := pki.KeyPair{Cert: files[file]}.Certificate()
		if err != nil {
			return pki.KeyPair{}, fmt.Errorf("/etc/kubernetes/pki/%s: %w", file, err)
		}
		if err := leaf.CheckSignatureFrom(ca); err != nil {
			return pki.KeyPair{}, fmt.Errorf("/etc/kubernetes/pki/%s, which the host uses, is not signed by /etc/kubernetes/pki/%s: %w", file, at.cert, err)
		}
	}
	return pair, nil
}

// encryptionIn is the key that the API server writes with, zero if the host has no file about one.
func encryptionIn(files map[string][]byte) (pki.KeyPair, error) {
	const at = "/etc/kubernetes/encryption/config.yaml"
	text, key := files[encryptionConfig], secret.New(files[encryptionKey])
	if len(text) == 0 {
		if key.IsZero() {
			return pki.KeyPair{}, nil
		}
		return pki.KeyPair{}, errors.New("there is no " + at + ", which the API server reads")
	}
	var config struct {
		Resources []struct {
			Providers []map[string]struct {
				Keys []struct {
					Secret string `json:"secret"`
				} `json:"keys"`
			} `json:"providers"`
		} `json:"resources"`
	}
	// A parser's error would show what it cannot read.
	if yaml.Unmarshal(text, &config) != nil || len(config.Resources) != 1 || len(config.Resources[0].Providers) == 0 {
		return pki.KeyPair{}, errors.New(at + " is not as kubexm writes it")
	}
	for _, provider := range config.Resources[0].Providers[0] {
		if len(provider.Keys) != 1 {
			break
		}
		pair := pki.KeyPair{Key: secret.New(provider.Keys[0].Secret)}
		if err := pair.CheckEncryptionKey(); err != nil {
			return pki.KeyPair{}, fmt.Errorf("%s: %w", at, err)
		}
		if !key.IsZero() && !key.Equal(pair.Key) {
			return pki.KeyPair{}, errors.New("/etc/kubernetes/encryption/key has another one than " + at + ", which the API server reads")
		}
		return pair, nil
	}
	return pki.KeyPair{}, errors.New(at + " is not as kubexm writes it")
}

// Files reads files of a control plane host by their absolute paths, keys among them, as Read does. Those that are not there are left out.
func Files(ctx context.Context, h host.Host, paths []string) (map[string][]byte, error) {
	return readFiles(ctx, h, paths)
}

// readFiles reads files below /etc/kubernetes/pki, and beside it. Those that are not there are left out. What is read stands in no event
// and no log.
func readFiles(ctx context.Context, h host.Host, names []string) (map[string][]byte, error) {
	said, err := h.Exec(ctx, host.Command{
		Title: "read key pairs", Argv: append([]string{"sh", "-euc", script, "sh"}, names...), Timeout: timeout,
	})
	if err != nil {
		return nil, err
	}
	if said.ExitCode != 0 {
		return nil, fmt.Errorf("host %s: read /etc/kubernetes/pki: exit code %d: %s", h.Name(), said.ExitCode, strings.TrimSpace(string(said.Stderr)))
	}
	files := map[string][]byte{}
	lines := bufio.NewScanner(bytes.NewReader(said.Stdout))
	lines.Buffer(nil, host.MaxContent)
	for lines.Scan() {
		name, encoded, _ := strings.Cut(lines.Text(), " ")
		content, err := base64.StdEncoding.DecodeString(encoded)
		if err != nil || !slices.Contains(names, name) {
			return nil, fmt.Errorf("host %s: read /etc/kubernetes/pki: the answer is not understood", h.Name())
		}
		files[name] = content
	}
	if lines.Err() != nil {
		return nil, fmt.Errorf("host %s: read /etc/kubernetes/pki: the answer is not understood", h.Name())
	}
	return files, nil
}
