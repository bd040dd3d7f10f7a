// Copyright 2026 The cluster-api-provider-kubexm Authors.
// SPDX-License-Identifier: Apache-2.0

package step_test

import (
	"crypto/tls"
	"encoding/pem"
	"errors"
	"fmt"
	"io/fs"
	"net/netip"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/mensylisir/cluster-api-provider-kubexm/pkg/host"
	"github.com/mensylisir/cluster-api-provider-kubexm/pkg/pki"
	"github.com/mensylisir/cluster-api-provider-kubexm/pkg/step"
)

const day = 24 * time.Hour

// authorities are certificate authorities by the names of their Secrets.
type authorities map[string]pki.KeyPair

func (a authorities) Secret(ref step.SecretRef) ([]byte, error) {
	pair, ok := a[ref.Name]
	if !ok {
		return nil, errors.New("there is no such secret")
	}
	if ref.Key == "tls.key" {
		return pair.Key.Reveal(), nil
	}
	return pair.Cert, nil
}

func (authorities) Output(string) ([]byte, error) { return nil, step.ErrUnknown }

func authority(t *testing.T, validity time.Duration) pki.KeyPair {
	t.Helper()
	ca, err := pki.NewCA(pki.CARequest{CommonName: "etcd", Key: pki.ECDSAP256, Validity: validity})
	if err != nil {
		t.Fatal(err)
	}
	return ca
}

// peer is a certificate with all that can be said of one.
func peer() step.Certificate {
	return step.Certificate{
		Path: "/ssl/n1.pem", KeyPath: "/ssl/n1-key.pem", Authority: "etcd", Trusted: "/ssl/ca.pem", CommonName: "n1", Organizations: []string{"b", "a"},
		DNSNames:  []string{"n1", "localhost"},
		Addresses: []netip.Addr{netip.MustParseAddr("10.0.0.1"), netip.MustParseAddr("::ffff:10.0.0.2"), netip.MustParseAddr("::1")},
		Usages:    []pki.Usage{pki.Server, pki.Client}, Validity: step.Duration(100 * day), RenewBefore: step.Duration(30 * day),
	}
}

// makeOf makes c on a host of which nothing is known, and returns what is seen of the host then.
func makeOf(t *testing.T, c step.Certificate, values step.Values) *host.Facts {
	t.Helper()
	e, err := c.Effect(step.View{Facts: &host.Facts{}, Values: values})
	if err != nil {
		t.Fatal(err)
	}
	f := &host.Facts{Taken: time.Now(), Paths: map[string]host.Path{}}
	for i, change := range e.Changes {
		file := change.(host.File)
		p := regular(string(file.Content.Reveal()), file.Mode)
		p.Content, p.Modified = file.Content.Reveal(), f.Taken.Add(time.Duration(i)*time.Millisecond)
		f.Paths[file.Path] = p
	}
	return f
}

func TestCertificateIsMade(t *testing.T) {
	ca := authority(t, 0)
	c := peer()
	e, err := c.Effect(step.View{Facts: &host.Facts{}, Values: authorities{"etcd": ca}})
	if err != nil {
		t.Fatal(err)
	}
	// The key comes first: anyone who is cut in between leaves a certificate that is older than its key.
	var made []string
	for _, change := range e.Changes {
		f := change.(host.File)
		made = append(made, fmt.Sprintf("%s %04o", f.Path, f.Mode))
	}
	if want := []string{"/ssl/n1-key.pem 0600", "/ssl/n1.pem 0644"}; !slices.Equal(made, want) {
		t.Fatalf("makes %q, want %q", made, want)
	}
	key, cert := e.Changes[0].(host.File).Content.Reveal(), e.Changes[1].(host.File).Content.Reveal()
	if _, err := tls.X509KeyPair(cert, key); err != nil {
		t.Error(err)
	}
	is, err := pki.KeyPair{Cert: cert}.Certificate()
	if err != nil {
		t.Fatal(err)
	}
	if left := time.Until(is.NotAfter); left < 99*day || left > 100*day {
		t.Errorf("it is valid for %s", left)
	}
	if text := fmt.Sprintf("%v %+v", e, e.Changes); strings.Contains(text, "PRIVATE") {
		t.Errorf("the key is shown: %s", text)
	}
	if q := c.Observe(); len(q.Paths) != 3 || q.Paths[1].Path != c.KeyPath || q.Paths[1].Content || q.Paths[1].Digest {
		t.Errorf("it asks for %+v, and the key is a secret", q.Paths)
	}
	if got := step.Writes(step.New(step.Meta{Name: "a"}, c)); !slices.Equal(got, []string{c.Path, c.KeyPath}) {
		t.Errorf("writes %q", got)
	}
	nested := step.New(step.Meta{Name: "b"}, step.New(step.Meta{Name: "a"}, c), step.Absent{Path: "/x"})
	if got := step.Certificates(nested); len(got) != 1 || got[0].Path != c.Path {
		t.Errorf("its ends are watched of %v", got)
	}
}

// certificateFile is a file with a certificate, as it is seen.
func certificateFile(content []byte) host.Path {
	p := regular(string(content), 0o644)
	p.Content = content
	return p
}

func TestCertificateIsRenewed(t *testing.T) {
	values := authorities{"etcd": authority(t, 0), "other": authority(t, 0)}
	path := func(f *host.Facts, name string, change func(*host.Path)) {
		p := f.Paths[name]
		change(&p)
		f.Paths[name] = p
	}
	for _, tt := range []struct {
		name   string
		change func(*step.Certificate, *host.Facts)
		want   string
	}{
		{"as it was made", func(*step.Certificate, *host.Facts) {}, ""},
		{"order and repetition are nothing", func(c *step.Certificate, _ *host.Facts) {
			c.DNSNames, c.Organizations = []string{"localhost", "n1", "n1"}, []string{"a", "b"}
			slices.Reverse(c.Addresses)
			slices.Reverse(c.Usages)
		}, ""},
		{"no certificate", func(c *step.Certificate, f *host.Facts) { delete(f.Paths, c.Path) }, "absent"},
		{"no key", func(c *step.Certificate, f *host.Facts) { delete(f.Paths, c.KeyPath) }, "without its key"},
		{"a link", func(c *step.Certificate, f *host.Facts) { f.Paths[c.KeyPath] = symlink("/elsewhere") }, "not a file"},
		{"cut after the key", func(c *step.Certificate, f *host.Facts) {
			path(f, c.KeyPath, func(p *host.Path) { p.Modified = f.Taken.Add(time.Second) })
		}, "older than its key"},
		{"garbage", func(c *step.Certificate, f *host.Facts) {
			path(f, c.Path, func(p *host.Path) { p.Content = []byte("garbage") })
		}, "not readable"},
		{"a certificate that is none", func(c *step.Certificate, f *host.Facts) {
			path(f, c.Path, func(p *host.Path) {
				p.Content = pem.EncodeToMemory(&pem.Block{Type: "CERTIFICATE", Bytes: []byte("x")})
			})
		}, "not readable"},
		{"another authority, beside the cluster's", func(c *step.Certificate, f *host.Facts) {
			c.Authority = "other"
			f.Paths[c.Trusted] = certificateFile(values["other"].Cert)
		}, "signed by another authority"},
		{"another common name", func(c *step.Certificate, _ *host.Facts) { c.CommonName = "n2" }, "for CN=n1,O="},
		{"another organization", func(c *step.Certificate, _ *host.Facts) { c.Organizations = []string{"a"} }, "for CN=n1,O="},
		{"one more name", func(c *step.Certificate, _ *host.Facts) { c.DNSNames = append(c.DNSNames, "x") }, "for other names and addresses"},
		{"another address", func(c *step.Certificate, _ *host.Facts) { c.Addresses = c.Addresses[:2] }, "for other names and addresses"},
		{"another usage", func(c *step.Certificate, _ *host.Facts) { c.Usages = c.Usages[:1] }, "for other usages"},
		{"long before its end", func(_ *step.Certificate, f *host.Facts) { f.Taken = f.Taken.Add(69 * day) }, ""},
		{"soon before its end", func(_ *step.Certificate, f *host.Facts) { f.Taken = f.Taken.Add(71 * day) }, "ends "},
		{"nobody wants it renewed", func(c *step.Certificate, f *host.Facts) { c.RenewBefore, f.Taken = 0, f.Taken.Add(99*day) }, ""},
		{"but it has ended", func(c *step.Certificate, f *host.Facts) { c.RenewBefore, f.Taken = 0, f.Taken.Add(101*day) }, "ended "},
		{"renewal before it was made", func(c *step.Certificate, _ *host.Facts) { c.RenewBefore = step.Duration(200 * day) }, ""},
		{"the key is for everybody to read", func(c *step.Certificate, f *host.Facts) {
			path(f, c.KeyPath, func(p *host.Path) { p.Mode = fs.FileMode(0o644) })
		}, "mode 0644"},
		{"the key is another's", func(c *step.Certificate, f *host.Facts) {
			path(f, c.KeyPath, func(p *host.Path) { p.Owner = "app" })
		}, "owner app:root"},
		{"owner wanted", func(c *step.Certificate, _ *host.Facts) { c.Owner = "app" }, "owner root:root"},
	} {
		t.Run(tt.name, func(t *testing.T) {
			c := peer()
			facts := makeOf(t, c, values)
			tt.change(&c, facts)
			d, err := c.Precheck(step.View{Facts: facts, Values: values})
			if err != nil {
				t.Fatal(err)
			}
			got := ""
			if len(d) > 0 {
				got = d[0].From
			}
			if !strings.HasPrefix(got, tt.want) || (got == "") != (tt.want == "") {
				t.Errorf("differs by %q, want %q", got, tt.want)
			}
		})
	}
}

// What was just made is as it must be, however short it lives: else the step would fail and be run for ever.
func TestCertificateIsNotRenewedAtOnce(t *testing.T) {
	for _, tt := range []struct {
		name                                 string
		authority, validity, before, renewed time.Duration
	}{
		{"for a day", 0, day, day, 13 * time.Hour},
		{"as long as nothing is said", 0, 0, 400 * day, 183 * day},
		// Another would end at the same time.
		{"until its authority ends", 20 * day, 100 * day, 30 * day, 0},
	} {
		t.Run(tt.name, func(t *testing.T) {
			values := authorities{"etcd": authority(t, tt.authority)}
			c := peer()
			c.Validity, c.RenewBefore = step.Duration(tt.validity), step.Duration(tt.before)
			facts := makeOf(t, c, values)
			differs := func() bool {
				d, err := c.Precheck(step.View{Facts: facts, Values: values})
				if err != nil {
					t.Fatal(err)
				}
				return len(d) > 0
			}
			if differs() {
				t.Error("it is renewed as soon as it is made")
			}
			if facts.Taken = facts.Taken.Add(tt.renewed); tt.renewed > 0 && !differs() {
				t.Errorf("it is not renewed after %s", tt.renewed)
			}
		})
	}
}

func TestCertificateNeedsItsAuthority(t *testing.T) {
	good := authorities{"etcd": authority(t, 0)}
	c := peer()
	facts := makeOf(t, c, good)
	leaf := pki.KeyPair{Cert: facts.Paths[c.Path].Content, Key: good["etcd"].Key}
	for _, tt := range []struct {
		name   string
		values authorities
		want   string
	}{
		{"there is none", authorities{}, "there is no such secret"},
		{"it is garbage", authorities{"etcd": {Cert: []byte("x"), Key: good["etcd"].Key}}, "PEM"},
		{"it is no authority", authorities{"etcd": leaf}, "does not belong"},
	} {
		t.Run(tt.name, func(t *testing.T) {
			_, err := c.Effect(step.View{Facts: &host.Facts{}, Values: tt.values})
			if err == nil || !strings.Contains(err.Error(), tt.want) {
				t.Errorf("the error is %v, want %q", err, tt.want)
			}
		})
	}
	_, err := c.Precheck(step.View{Facts: facts, Values: authorities{"etcd": {Cert: []byte("x")}}})
	if err == nil || !strings.Contains(err.Error(), "etcd/tls.crt") {
		t.Errorf("the error is %v, it should name the secret", err)
	}
}
