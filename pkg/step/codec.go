// Copyright 2026 The cluster-api-provider-kubexm Authors.
// SPDX-License-Identifier: Apache-2.0

package step

import (
	"bytes"
	"encoding/json"
	"fmt"
	"maps"
	"reflect"
	"slices"
)

// kinds is the closed set of step kinds by their name in JSON.
var kinds = map[string]reflect.Type{
	"sequence": reflect.TypeFor[Sequence](),
	"file":     reflect.TypeFor[File](), "directory": reflect.TypeFor[Directory](),
	"absent": reflect.TypeFor[Absent](), "block": reflect.TypeFor[Block](),
	"service": reflect.TypeFor[Service](), "sysctl": reflect.TypeFor[Sysctl](), "module": reflect.TypeFor[Module](),
	"swapOff": reflect.TypeFor[SwapOff](), "package": reflect.TypeFor[Package](),
	"command": reflect.TypeFor[Command](), "claim": reflect.TypeFor[Claim](), "import": reflect.TypeFor[Import](),
	"await": reflect.TypeFor[Await](), "token": reflect.TypeFor[Token](), "apply": reflect.TypeFor[Apply](),
	"release": reflect.TypeFor[Release](), "pruneAddons": reflect.TypeFor[PruneAddons](), "certificate": reflect.TypeFor[Certificate](),
	"etcd": reflect.TypeFor[Etcd](), "savepoint": reflect.TypeFor[Savepoint](), "commit": reflect.TypeFor[Commit](),
	"steady":       reflect.TypeFor[Steady](),
	"nodeMetadata": reflect.TypeFor[NodeMetadata](),
	"user":         reflect.TypeFor[User](), "waitFor": reflect.TypeFor[WaitFor](),
	"drain": reflect.TypeFor[Drain](), "uncordon": reflect.TypeFor[Uncordon](),
}

// KindOf returns the name of s's kind in JSON, or "" when s is not one of this package's.
func KindOf(s Step) string {
	t := reflect.TypeOf(s)
	for name, k := range kinds {
		if k == t {
			return name
		}
	}
	return ""
}

// Marshal writes s as {"<kind>": {…}}. The form is stable: fields in their order, no references resolved.
func Marshal(s Step) ([]byte, error) {
	kind := KindOf(s)
	if kind == "" {
		return nil, fmt.Errorf("step of type %T cannot be written: it is not a kind of package step", s)
	}
	body, err := json.Marshal(s)
	if err != nil {
		return nil, err
	}
	return json.Marshal(map[string]json.RawMessage{kind: body})
}

// Unmarshal reads what Marshal writes. An unknown kind or field is an error.
func Unmarshal(raw []byte) (Step, error) {
	var one map[string]json.RawMessage
	if err := json.Unmarshal(raw, &one); err != nil {
		return nil, fmt.Errorf("a step is an object with its kind as the only key: %w", err)
	}
	if len(one) != 1 {
		return nil, fmt.Errorf("a step is an object with its kind as the only key; this has %d", len(one))
	}
	kind := slices.Collect(maps.Keys(one))[0]
	t, ok := kinds[kind]
	if !ok {
		return nil, fmt.Errorf("unknown step kind %q", kind)
	}
	p := reflect.New(t)
	if err := strict(one[kind], p.Interface()); err != nil {
		return nil, fmt.Errorf("step %s: %w", kind, err)
	}
	s, ok := p.Elem().Interface().(Step)
	if !ok {
		return nil, fmt.Errorf("kind %s is not a step", kind)
	}
	return s, nil
}

func strict(raw []byte, into any) error {
	d := json.NewDecoder(bytes.NewReader(raw))
	d.DisallowUnknownFields()
	return d.Decode(into)
}

// sequence is Sequence in JSON.
type sequence struct {
	About Meta              `json:"about"`
	Done  *Done             `json:"done,omitempty"`
	Parts []json.RawMessage `json:"parts"`
}

// MarshalJSON writes the parts with their kinds.
func (s Sequence) MarshalJSON() ([]byte, error) {
	out := sequence{About: s.About, Done: s.Done}
	for _, p := range s.Parts {
		raw, err := Marshal(p)
		if err != nil {
			return nil, err
		}
		out.Parts = append(out.Parts, raw)
	}
	return json.Marshal(out)
}

// UnmarshalJSON reads what MarshalJSON writes.
func (s *Sequence) UnmarshalJSON(raw []byte) error {
	var in sequence
	if err := strict(raw, &in); err != nil {
		return err
	}
	s.About, s.Done, s.Parts = in.About, in.Done, nil
	for i, r := range in.Parts {
		p, err := Unmarshal(r)
		if err != nil {
			return fmt.Errorf("part %d of %s: %w", i, in.About.Name, err)
		}
		s.Parts = append(s.Parts, p)
	}
	return nil
}
