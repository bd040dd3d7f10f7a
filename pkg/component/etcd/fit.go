// Copyright 2026 The cluster-api-provider-kubexm Authors.
// SPDX-License-Identifier: Apache-2.0

package etcd

import (
	"bytes"
	"fmt"
	"net/url"
	"path"
	"slices"
	"strconv"
	"strings"
	"time"

	"github.com/mensylisir/cluster-api-provider-kubexm/pkg/component"
	"github.com/mensylisir/cluster-api-provider-kubexm/pkg/host"
	"github.com/mensylisir/cluster-api-provider-kubexm/pkg/pki"
	"github.com/mensylisir/cluster-api-provider-kubexm/pkg/secret"
	"github.com/mensylisir/cluster-api-provider-kubexm/pkg/spec"
)

// before is how a remedy ends that is about how etcd runs.
const before = ", and restart etcd, before the cluster is adopted"

func reason(cause, remedy string) component.Reason {
	return component.Reason{Cause: cause, Remedy: remedy}
}

// Unfit are the reasons for which the member on a host with this address cannot go on as that of a Unit of ours, whose program is of this
// version. What etcd says of its members, and its files, are judged elsewhere.
func (t Theirs) Unfit(e spec.Etcd, address, version string) []component.Reason {
	switch {
	case t.Pod != "":
		return []component.Reason{reason("it has "+t.Pod+", and etcd as the unit "+service+" is declared",
			"set spec.etcd.type: kubeadm if etcd runs in kubeadm's static pods; if that is a file of old, move it away")}
	case t.State != "active":
		return []component.Reason{reason(service+" is "+host.Word(t.State, 20)+", and etcd as this unit is declared",
			"a cluster is adopted while it runs: start it; where etcd runs in kubeadm's static pods, or elsewhere, "+
				"set spec.etcd.type: kubeadm, or external")}
	}
	ours := Settings{Address: address, Spec: e}
	var all []component.Reason
	refuse := func(cause, remedy string) { all = append(all, reason(cause, remedy)) }
	data := path.Clean(t.Settings["data-dir"])
	if data != path.Clean(e.DataDir) {
		refuse(fmt.Sprintf("the directory of etcd's data is %q, and %q is declared; it cannot be changed", data, e.DataDir), "set spec.etcd.dataDir: "+data)
	}
	wal := path.Join(data, "member", "wal")
	if own := t.Settings["wal-dir"]; own != "" {
		wal = path.Clean(own)
	}
	if data == path.Clean(e.DataDir) && wal != path.Clean(ours.walDir()) {
		refuse(fmt.Sprintf("etcd's write-ahead log is in %s, and would be looked for in %s; it cannot be changed", wal, ours.walDir()),
			fmt.Sprintf("set spec.etcd.extraArgs: [{name: wal-dir, value: %s}]", wal))
	}
	if client := "https://" + host.InURL(address) + ":2379"; !hasURL(t.Settings["advertise-client-urls"], client) {
		refuse(fmt.Sprintf("etcd has advertise-client-urls %q, without %s", t.Settings["advertise-client-urls"], client), "add it"+before)
	}
	return slices.Concat(all, t.unknown(), t.limits(), t.versions(version))
}

// hasURL reports whether a URL is in a list of them.
func hasURL(list, wanted string) bool {
	return slices.ContainsFunc(strings.Split(list, ","), func(text string) bool {
		parsed, err := url.Parse(strings.TrimSpace(text))
		return err == nil && parsed.Scheme+"://"+parsed.Host == wanted
	})
}

// unknown are ways by which etcd would not know clients and peers by their certificates.
func (t Theirs) unknown() []component.Reason {
	var all []component.Reason
	for _, of := range []struct{ prefix, who string }{{"", "clients"}, {"peer-", "peers"}} {
		var missing []string
		for _, name := range []string{"cert-file", "key-file", "trusted-ca-file"} {
			if t.Settings[of.prefix+name] == "" {
				missing = append(missing, of.prefix+name)
			}
		}
		if t.Settings[of.prefix+"client-cert-auth"] != "true" {
			missing = append(missing, of.prefix+"client-cert-auth")
		}
		if len(missing) > 0 {
			all = append(all, reason("etcd does not know its "+of.who+" by certificates: it lacks "+strings.Join(missing, ", "), "set these"+before))
		}
	}
	return all
}

// limits are settings by which a member would refuse another that has our certificate.
func (t Theirs) limits() []component.Reason {
	var all []component.Reason
	for _, name := range []string{"client-cert-allowed-hostname", "peer-cert-allowed-cn", "peer-cert-allowed-hostname"} {
		if value := t.Settings[name]; value != "" {
			all = append(all, reason(fmt.Sprintf("etcd has %s %s: it would refuse members that have kubexm's certificates already", name, value),
				"remove the setting on all members"+before))
		}
	}
	return all
}

// versions are reasons by what etcd runs there, and will run of the bundle: data can go on to the next minor version, and no further.
func (t Theirs) versions(bundle string) []component.Reason {
	have, known := minorOf(t.Version)
	wanted, ours := minorOf(bundle)
	switch {
	case !known || !ours:
		return []component.Reason{reason(fmt.Sprintf("the version of its etcd is not known (%q)", host.Word(t.Version, 40)), "check that the unit runs etcd itself")}
	case have > wanted:
		return []component.Reason{reason(fmt.Sprintf("its etcd is %s, and the bundle has %s: etcd does not start with data of a later minor version", t.Version, bundle),
			"use a bundle that has etcd "+t.Version+" or later")}
	case have+1 < wanted:
		return []component.Reason{reason(fmt.Sprintf("its etcd is %s, and the bundle has %s: etcd is upgraded by one minor version at a time", t.Version, bundle),
			"upgrade etcd to the minor version before "+bundle+" first")}
	}
	return nil
}

// minorOf is 3006 of 3.6.14.
func minorOf(version string) (int, bool) {
	parts := strings.SplitN(strings.TrimPrefix(version, "v"), ".", 3)
	if len(parts) < 2 {
		return 0, false
	}
	major, err := strconv.Atoi(parts[0])
	minor, also := strconv.Atoi(parts[1])
	return major*1000 + minor, err == nil && also == nil
}

// keyOf is where the key of an authority is, by the name of its certificate: ca-key.pem beside ca.pem, and ca.key beside ca.crt.
func keyOf(ca string) string {
	if base, is := strings.CutSuffix(ca, ".pem"); is {
		return base + "-key.pem"
	}
	return strings.TrimSuffix(ca, path.Ext(ca)) + ".key"
}

// Files are those by which the authority is judged, and its key, which only one member's host needs to have.
func (t Theirs) Files() []string {
	var all []string
	for _, file := range append(t.certificates(), t.Settings["trusted-ca-file"], t.Settings["peer-trusted-ca-file"]) {
		if file != "" && !slices.Contains(all, file) {
			all = append(all, file)
		}
	}
	if ca := t.Settings["trusted-ca-file"]; ca != "" {
		all = append(all, keyOf(ca))
	}
	return all
}

// certificates are those that the authority must have signed, besides which there is one of the API server.
func (t Theirs) certificates() []string {
	return []string{t.Settings["cert-file"], t.Settings["peer-cert-file"], t.ClientCert}
}

// Authority is what etcd knows its members and clients by, of what its Files hold: with its key if the host has that, and the reasons for
// which it cannot be taken over. It is zero if there is none.
func (t Theirs) Authority(files map[string][]byte, now time.Time) (pki.KeyPair, []component.Reason) {
	ca, peers := t.Settings["trusted-ca-file"], t.Settings["peer-trusted-ca-file"]
	if ca == "" || peers == "" {
		return pki.KeyPair{}, nil // it has no TLS, which is a reason already
	}
	pair := pki.KeyPair{Cert: files[ca]}
	authority, err := pair.Certificate()
	if err != nil {
		return pki.KeyPair{}, []component.Reason{reason(ca+", by which etcd knows its clients, cannot be read: "+err.Error(), "restore it")}
	}
	var all []component.Reason
	refuse := func(cause, remedy string) { all = append(all, reason(cause, remedy)) }
	if n := bytes.Count(files[ca], []byte("-----BEGIN CERTIFICATE-----")); n > 1 {
		refuse(fmt.Sprintf("%s has %d certificates: etcd is on its way to another authority", ca, n), "bring that to its end first")
	}
	if other, err := (pki.KeyPair{Cert: files[peers]}).Certificate(); err != nil || !other.Equal(authority) {
		refuse(fmt.Sprintf("etcd knows its clients by %s and its peers by %s, which is another authority", ca, peers),
			"have etcd know both by one authority"+before)
	}
	for _, file := range t.certificates() {
		if file == "" {
			continue
		}
		leaf, err := pki.KeyPair{Cert: files[file]}.Certificate()
		if err == nil {
			err = leaf.CheckSignatureFrom(authority)
		}
		if err != nil {
			refuse(fmt.Sprintf("%s, which is in use, is not signed by %s: %v", file, ca, err), "have one authority sign all of etcd's certificates"+before)
		}
	}
	key := files[keyOf(ca)]
	if len(key) == 0 {
		return pair, all
	}
	pair.Key = secret.New(key)
	if err := pair.CheckCA(now); err != nil {
		refuse(fmt.Sprintf("%s and %s are no key pair that signs certificates: %v", ca, keyOf(ca), err), "restore them")
	}
	return pair, all
}

// Key is where that of its authority is looked for.
func (t Theirs) Key() string { return keyOf(t.Settings["trusted-ca-file"]) }
