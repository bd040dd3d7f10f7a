// Copyright 2026 The cluster-api-provider-kubexm Authors.
// SPDX-License-Identifier: Apache-2.0

package host

import (
	"bytes"
	"encoding/json"
	"errors"
	"fmt"
	"strings"
	"time"
)

// SerialFile is the file in StateDir that says with which state of its cluster the host was changed last: a Serial in JSON, mode 0600.
const SerialFile = "state-serial"

// MaxSerial is the most bytes that the record of a serial has.
const MaxSerial = 4096

// Serial identifies a state of a cluster that somebody keeps in files, so that of two copies of it the older one is known. It is written by
// who keeps such a state: the command, and no manager. A host has one from the first run that wrote one until all changes are undone.
type Serial struct {
	// Number is one higher with each run, from 1.
	Number int64 `json:"number"`
	// Token is drawn anew with each number: two copies that went on from the same number have the same next number, and other tokens.
	Token string `json:"token"`
	// Authority is the fingerprint of the cluster's certificate authority. A serial of another authority says nothing.
	Authority string `json:"authority"`
	// By names who wrote it, as Run.Holder does, and Time says when, in UTC. Both are for people.
	By   string    `json:"by"`
	Time time.Time `json:"time"`
}

// String names the serial for people.
func (s Serial) String() string {
	return fmt.Sprintf("%d, written by %s at %s", s.Number, s.By, s.Time.UTC().Format(time.RFC3339))
}

// Same reports whether both are of one run.
func (s Serial) Same(other Serial) bool { return s.Number == other.Number && s.Token == other.Token }

// Supersedes reports whether the copy of the state that has other may not be worked with where s was written: it is older, or has gone on
// from the same number by itself.
func (s Serial) Supersedes(other Serial) bool {
	return s.Number > other.Number || s.Number == other.Number && s.Token != other.Token
}

// SerialOf is the serial that the host has of the cluster with this authority, nil if it has none.
func (f *Facts) SerialOf(authority string) *Serial {
	if f.Serial == nil || f.Serial.Authority != authority {
		return nil
	}
	return f.Serial
}

// CheckSerial returns nil if the serial may be written on the host called name, as it was seen. The error is an *Error of
// KindSuperseded: the host was changed with a later state meanwhile.
func (s Serial) CheckSerial(name string, f *Facts) error {
	is := f.SerialOf(s.Authority)
	if is == nil || !is.Supersedes(s) {
		return nil
	}
	return &Error{
		Kind: KindSuperseded, Host: name,
		Message: fmt.Sprintf("the host was changed with another copy of the cluster's state meanwhile, serial %s; this run has %d", is, s.Number),
		Remedy:  "work with that copy of the state",
	}
}

// Validate returns nil if s can be a host's record: all fields are set, and each is short and printable.
func (s Serial) Validate() error {
	if s.Number < 1 {
		return fmt.Errorf("the number is %d", s.Number)
	}
	if s.Time.IsZero() {
		return errors.New("time is missing")
	}
	for _, f := range []struct{ name, value string }{{"token", s.Token}, {"authority", s.Authority}, {"by", s.By}} {
		switch {
		case f.value == "":
			return fmt.Errorf("%s is missing", f.name)
		case len(f.value) > 512:
			return fmt.Errorf("%s is longer than 512 characters", f.name)
		case strings.ContainsFunc(f.value, func(r rune) bool { return r < ' ' || r > '~' }):
			return fmt.Errorf("%s has characters that are not printed", f.name)
		}
	}
	return nil
}

// ReadSerial reads a record. What is not one as kubexm writes it is an error.
func ReadSerial(record []byte) (*Serial, error) {
	if len(record) > MaxSerial {
		return nil, fmt.Errorf("it is longer than %d bytes", MaxSerial)
	}
	if len(bytes.TrimSpace(record)) == 0 {
		return nil, errors.New("it is empty")
	}
	s := &Serial{}
	d := json.NewDecoder(bytes.NewReader(record))
	d.DisallowUnknownFields()
	if err := d.Decode(s); err != nil {
		return nil, errors.New("it is not the JSON of a serial")
	}
	if d.More() {
		return nil, errors.New("something follows its JSON")
	}
	if err := s.Validate(); err != nil {
		return nil, err
	}
	return s, nil
}
