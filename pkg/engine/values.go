// Copyright 2026 The cluster-api-provider-kubexm Authors.
// SPDX-License-Identifier: Apache-2.0

package engine

import (
	"errors"
	"fmt"
	"maps"
	"slices"
	"sync"

	"github.com/mensylisir/cluster-api-provider-kubexm/pkg/step"
)

// values resolves references for the steps of one run. Whatever passes through it is a secret to the redactor.
type values struct {
	mu      sync.Mutex
	source  func(step.SecretRef) ([]byte, error)
	secrets map[step.SecretRef][]byte
	outputs map[string][]byte
	redact  *redactor
}

func newValues(source func(step.SecretRef) ([]byte, error), r *redactor) *values {
	return &values{
		source: source, redact: r, secrets: make(map[step.SecretRef][]byte), outputs: make(map[string][]byte),
	}
}

// Secret asks the source once per reference, so that one run sees one value.
func (v *values) Secret(ref step.SecretRef) ([]byte, error) {
	v.mu.Lock()
	defer v.mu.Unlock()
	if s, ok := v.secrets[ref]; ok {
		return s, nil
	}
	if v.source == nil {
		return nil, errors.New("no source of secrets is configured")
	}
	s, err := v.source(ref)
	if err != nil {
		return nil, err
	}
	v.secrets[ref] = s
	v.redact.learn(s)
	return s, nil
}

// Output is ErrUnknown until the output is made.
func (v *values) Output(name string) ([]byte, error) {
	v.mu.Lock()
	defer v.mu.Unlock()
	o, ok := v.outputs[name]
	if !ok {
		return nil, step.ErrUnknown
	}
	return o, nil
}

// publish makes the outputs that a node declares known. One that the step gave no value says only that the node ended
// well.
func (v *values) publish(declared []string, made map[string][]byte) {
	v.mu.Lock()
	defer v.mu.Unlock()
	for _, name := range declared {
		v.outputs[name] = made[name]
	}
}

// outputs collects what one attempt makes. A step that makes what it does not declare has a defect, which is reported when
// it ends.
type outputs struct {
	mu       sync.Mutex
	declared []string
	made     map[string][]byte
	redact   *redactor
}

func (o *outputs) add(name string, value []byte) {
	o.mu.Lock()
	defer o.mu.Unlock()
	if o.made == nil {
		o.made = make(map[string][]byte)
	}
	o.redact.learn(value)
	o.made[name] = slices.Clone(value)
}

func (o *outputs) publish(v *values) error {
	o.mu.Lock()
	defer o.mu.Unlock()
	for _, name := range slices.Sorted(maps.Keys(o.made)) {
		if !slices.Contains(o.declared, name) {
			return fmt.Errorf("made output %s, which it does not declare", name)
		}
	}
	v.publish(o.declared, o.made)
	return nil
}
