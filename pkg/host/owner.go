// Copyright 2026 The cluster-api-provider-kubexm Authors.
// SPDX-License-Identifier: Apache-2.0

package host

import (
	"bytes"
	"encoding/json"
	"errors"
	"fmt"
	"strings"
)

// OwnerFile is the file in StateDir that says whose the host is: an Owner in JSON, mode 0600.
const OwnerFile = "owner"

// MaxOwner is the most bytes that a record of an owner has.
const MaxOwner = 4096

// AdoptUnknown is the value of Ownership.Adopt that takes over a host that was changed and does not say by whom: its record is missing or
// cannot be read.
const AdoptUnknown = "unknown"

// Owner says whose a host is, and which of the owner's hosts it is. A host has one from its first Begin until all changes
// are undone.
type Owner struct {
	// Cluster is the cluster's name for people: "namespace/name" from managers, "name" from the command.
	Cluster string `json:"cluster"`
	// Authority identifies the cluster: the fingerprint of its certificate authority's public key (pki.Fingerprint). It is
	// the same after the cluster's objects were moved or restored.
	Authority string `json:"authority"`
	// Role is what the host is for: "ControlPlane", "Worker", "Etcd", "LoadBalancer".
	Role string `json:"role"`
	// Host is the cluster's name of the host.
	Host string `json:"host"`
	// MachineID is System.MachineID as it was when the record was written. A claim has none.
	MachineID string `json:"machineID,omitempty"`
}

// String names the host and its owner for people.
func (o Owner) String() string {
	return fmt.Sprintf("the %s host %s of cluster %s (authority %s)", o.Role, o.Host, o.Cluster, o.Authority)
}

// Ownership is what a writer claims: for whom a host is changed. The zero Ownership is nobody's: it is refused by hosts that
// have an owner.
type Ownership struct {
	// Owner is whose the host is meant to be. Authority "" is that of a cluster that has none yet: it owns no host.
	Owner Owner
	// Adopt is the Cluster or the Authority of another owner from whom a person takes the host over, or AdoptUnknown. It has no
	// effect on a host of any other owner.
	Adopt string
}

// IsZero reports whether c is nobody's.
func (c Ownership) IsZero() bool { return c == Ownership{} }

// Owns reports whether the host that was seen is the claimed owner's by its own record, without an adoption.
func (c Ownership) Owns(f *Facts) bool {
	return f.Owner != nil && f.OwnerUnreadable == "" && len(c.differences(f)) == 0
}

// Adopts reports whether the host that was seen is somebody else's, and c takes it over.
func (c Ownership) Adopts(f *Facts) bool {
	switch {
	case c.Adopt == "":
		return false
	case f.OwnerUnreadable != "", f.Owner == nil && f.Changed():
		return c.Adopt == AdoptUnknown
	case f.Owner == nil:
		return false
	}
	return (c.Adopt == f.Owner.Cluster || c.Adopt == f.Owner.Authority) && len(c.differences(f)) > 0
}

// Check returns nil if the host called name, as it was seen, may be changed by anyone who makes the claim: it is theirs,
// nobody's, or taken over. The error is an *Error of KindForeign that says whose the host is, what was expected, and what to
// do.
func (c Ownership) Check(name string, f *Facts) error {
	if c.Adopts(f) {
		return nil
	}
	switch {
	case f.OwnerUnreadable != "":
		return c.foreign(name, AdoptUnknown, "the record of its owner, "+StateDir+"/"+OwnerFile+", cannot be read: "+f.OwnerUnreadable)
	case f.Owner == nil && f.Changed() && !c.IsZero():
		return c.foreign(name, AdoptUnknown, "it was changed by kubexm, and there is no record of its owner, "+StateDir+"/"+OwnerFile)
	case f.Owner == nil:
		return nil
	}
	if differences := c.differences(f); len(differences) > 0 {
		return c.foreign(name, f.Owner.Cluster, fmt.Sprintf("it is %s: %s", f.Owner, strings.Join(differences, "; ")))
	}
	return nil
}

func (c Ownership) foreign(name, adopt, why string) error {
	own := ""
	if c.Owner.Authority == "" {
		own = "if the host is the cluster's own, go on where its certificate authorities are, or restore them; else "
	}
	return &Error{
		Kind: KindForeign, Host: name, Message: "the host belongs to somebody else, and nothing was changed: " + why,
		Remedy: own + fmt.Sprintf("check whether the address leads to the host that is meant; have its owner reset it (kubexm reset host, "+
			"or delete its Machine), or, to take it over with all that runs there, adopt it by name: %s", adopt),
	}
}

// differences says in what the host's record and the claim disagree. The record's name of the cluster does not count.
func (c Ownership) differences(f *Facts) []string {
	is, claimed := f.Owner, c.Owner
	var found []string
	differ := func(what, is, wanted string) {
		found = append(found, fmt.Sprintf("%s is %s, not %s", what, quoteOrNone(is), quoteOrNone(wanted)))
	}
	if is.Authority != claimed.Authority {
		differ("its cluster's authority", is.Authority, claimed.Authority)
	}
	if is.Host != claimed.Host {
		differ("its name", is.Host, claimed.Host)
	}
	if is.Role != claimed.Role {
		differ("its role", is.Role, claimed.Role)
	}
	if is.MachineID != "" && is.MachineID != f.System.MachineID {
		found = append(found, fmt.Sprintf("its record was written on the machine %s, and this machine is %s: the disk was cloned, or the record copied",
			is.MachineID, quoteOrNone(f.System.MachineID)))
	}
	return found
}

func quoteOrNone(s string) string {
	if s == "" {
		return "none"
	}
	return s
}

// Changed reports whether the host remembers that it was changed.
func (f *Facts) Changed() bool { return len(f.Journal) > 0 || f.UndoEntries > 0 }

// Validate returns nil if o can be a host's record: all fields but MachineID are set, and each is short and printable.
func (o Owner) Validate() error {
	for _, f := range []struct{ name, value string }{
		{"cluster", o.Cluster}, {"authority", o.Authority}, {"role", o.Role}, {"host", o.Host}, {"machineID", o.MachineID},
	} {
		switch {
		case f.value == "" && f.name != "machineID":
			return fmt.Errorf("%s is missing", f.name)
		case len(f.value) > 512:
			return fmt.Errorf("%s is longer than 512 characters", f.name)
		case strings.ContainsFunc(f.value, func(r rune) bool { return r <= ' ' || r > '~' || r == '"' || r == '\\' }):
			return fmt.Errorf("%s has characters that no name has", f.name)
		}
	}
	return nil
}

// ReadOwner reads a record. What is not one as kubexm writes it is an error.
func ReadOwner(record []byte) (*Owner, error) {
	if len(record) > MaxOwner {
		return nil, fmt.Errorf("it is longer than %d bytes", MaxOwner)
	}
	if len(bytes.TrimSpace(record)) == 0 {
		return nil, errors.New("it is empty")
	}
	o := &Owner{}
	d := json.NewDecoder(bytes.NewReader(record))
	d.DisallowUnknownFields()
	if err := d.Decode(o); err != nil {
		return nil, errors.New("it is not the JSON of an owner")
	}
	if d.More() {
		return nil, errors.New("something follows its JSON")
	}
	return o, o.Validate()
}
