// Copyright 2026 The cluster-api-provider-kubexm Authors.
// SPDX-License-Identifier: Apache-2.0

package step

import (
	"bytes"
	"errors"
	"fmt"
	"slices"
	"strings"

	"github.com/mensylisir/cluster-api-provider-kubexm/pkg/graph"
	"github.com/mensylisir/cluster-api-provider-kubexm/pkg/secret"
	"github.com/mensylisir/cluster-api-provider-kubexm/pkg/spec"
)

// ErrUnknown says that a value is an output that nothing has made yet. A Precheck that meets it counts as "differs".
var ErrUnknown = errors.New("not known yet")

// Text is content that is partly a reference: to a secret, or to an output of an earlier step. It is the concatenation
// of its segments. Plans and goldens show the references; the values exist only while a step runs.
type Text []Segment

// Segment is exactly one of a literal, a secret and an output, or what that stands for in an encoding.
type Segment struct {
	Literal string     `json:"literal,omitempty"`
	Secret  *SecretRef `json:"secret,omitempty"`
	Output  string     `json:"output,omitempty"`
	// Encoding of it, "" if it stands for itself.
	Encoding spec.FileEncoding `json:"encoding,omitempty"`
}

// SecretRef names a value that the caller of the engine holds: a key of a Secret beside the Cluster, or a file of the
// CLI's state directory.
type SecretRef struct {
	// Name is without the cluster's name: "ca", "etcd", "proxy", "sa", "kubeconfig" or a Secret that the user named.
	Name string `json:"name"`
	Key  string `json:"key"`
}

// String returns name/key.
func (r SecretRef) String() string { return r.Name + "/" + r.Key }

// Literal is a text that is known.
func Literal(s string) Text { return Text{{Literal: s}} }

// Literalf is a text that is known, formatted as fmt.Sprintf does.
func Literalf(format string, args ...any) Text { return Literal(fmt.Sprintf(format, args...)) }

// Secret is a text that is a secret.
func Secret(name, key string) Text { return Text{{Secret: &SecretRef{Name: name, Key: key}}} }

// FromOutput is a text that an earlier step makes.
func FromOutput(o graph.Output[string]) Text { return Text{{Output: o.Name}} }

// Encoded is what t stands for in an encoding.
func Encoded(t Text, encoding spec.FileEncoding) Text {
	t = slices.Clone(t)
	for i := range t {
		t[i].Encoding = encoding
	}
	return t
}

// Join concatenates texts.
func Join(ts ...Text) Text {
	var all Text
	for _, t := range ts {
		all = append(all, t...)
	}
	return all
}

// Takes returns the names of the outputs in t.
func (t Text) Takes() []string {
	var names []string
	for _, s := range t {
		if s.Output != "" {
			names = append(names, s.Output)
		}
	}
	return names
}

// Known reports whether t is literal throughout, so that it may be shown.
func (t Text) Known() bool {
	for _, s := range t {
		if s.Secret != nil || s.Output != "" {
			return false
		}
	}
	return true
}

// String shows t with its references in place of values: <secret ca/tls.key>, <output join-token>.
func (t Text) String() string {
	var b bytes.Buffer
	for _, s := range t {
		switch {
		case s.Secret != nil:
			fmt.Fprintf(&b, "<secret %s%s>", s.Secret, s.encoded())
		case s.Output != "":
			fmt.Fprintf(&b, "<output %s>", s.Output)
		default:
			b.WriteString(s.Literal)
		}
	}
	return b.String()
}

// encoded is the encoding, for people.
func (s Segment) encoded() string {
	if s.Encoding == "" {
		return ""
	}
	return " in " + string(s.Encoding)
}

// refs are the references in t, for people.
func (t Text) refs() string {
	var refs []string
	for _, s := range t {
		if s.Secret != nil || s.Output != "" {
			refs = append(refs, Text{s}.String())
		}
	}
	return strings.Join(refs, " ")
}

// Resolve returns t's value. The error names the reference that is missing.
func (t Text) Resolve(v Values) (secret.Value, error) {
	var b bytes.Buffer
	for _, s := range t {
		x, err := s.resolve(v)
		if err != nil {
			return secret.Value{}, err
		}
		b.Write(x)
	}
	return secret.New(b.Bytes()), nil
}

func (s Segment) resolve(v Values) (x []byte, err error) {
	what := "content"
	switch {
	case s.Secret != nil:
		what = "secret " + s.Secret.String()
		x, err = v.Secret(*s.Secret)
	case s.Output != "":
		what = "output " + s.Output
		x, err = v.Output(s.Output)
	default:
		x = []byte(s.Literal)
	}
	if err == nil && s.Encoding != "" {
		x, err = spec.Decode(s.Encoding, x)
	}
	if err != nil {
		return nil, fmt.Errorf("%s: %w", what, err)
	}
	return x, nil
}
