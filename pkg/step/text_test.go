// Copyright 2026 The cluster-api-provider-kubexm Authors.
// SPDX-License-Identifier: Apache-2.0

package step_test

import (
	"errors"
	"fmt"
	"strings"
	"testing"

	"github.com/mensylisir/cluster-api-provider-kubexm/pkg/graph"
	"github.com/mensylisir/cluster-api-provider-kubexm/pkg/spec"
	"github.com/mensylisir/cluster-api-provider-kubexm/pkg/step"
)

func TestText(t *testing.T) {
	token := graph.Output[string]{Name: "token"}
	for _, tt := range []struct {
		text         step.Text
		shown, value string
		known        bool
	}{
		{nil, "", "", true},
		{step.Literal("a"), "a", "a", true},
		{step.Literalf("%d%%", 5), "5%", "5%", true},
		{step.Secret("app", "password"), "<secret app/password>", "hunter2", false},
		{step.Join(step.Literal("pw="), step.Secret("app", "password"), step.Literal("\n")), "pw=<secret app/password>\n", "pw=hunter2\n", false},
		{step.FromOutput(token), "<output token>", "error: output token: not known yet", false},
		{step.Secret("app", "other"), "<secret app/other>", "error: secret app/other: there is no such secret", false},
	} {
		if got := fmt.Sprintf("%s", tt.text); got != tt.shown {
			t.Errorf("%q is shown as %q", tt.shown, got)
		}
		if got := tt.text.Known(); got != tt.known {
			t.Errorf("%s: known is %v", tt.shown, got)
		}
		v, err := tt.text.Resolve(values{})
		got := string(v.Reveal())
		if err != nil {
			got = "error: " + err.Error()
		}
		if got != tt.value {
			t.Errorf("%s has the value %q, want %q", tt.shown, got, tt.value)
		}
	}
	if _, err := step.FromOutput(token).Resolve(values{}); !errors.Is(err, step.ErrUnknown) {
		t.Errorf("%v is not ErrUnknown", err)
	}
}

// However a resolved text is printed, it is not its value.
func TestResolvedTextIsNotShown(t *testing.T) {
	v, err := step.Secret("app", "password").Resolve(values{})
	if err != nil {
		t.Fatal(err)
	}
	for _, verb := range []string{"%v", "%+v", "%#v", "%s", "%q", "%x"} {
		if got := fmt.Sprintf(verb, v); got == "" || got == fmt.Sprintf(verb, "hunter2") {
			t.Errorf("%s prints %s", verb, got)
		}
	}
}

// encoded has one secret, which stands for another text.
type encoded struct{ values }

func (encoded) Secret(step.SecretRef) ([]byte, error) { return []byte("aGVsbG8K"), nil }

// TestEncodedText: what stands for something else is that when it is resolved, and what it is not says nothing of it.
func TestEncodedText(t *testing.T) {
	for name, c := range map[string]struct {
		text step.Text
		want string
	}{
		"a secret":       {step.Encoded(step.Secret("app", "token"), spec.EncodingBase64), "hello\n"},
		"a literal":      {step.Encoded(step.Literal("H4sIAAAAAAAAA8tIzcnJ5wIAIDA6NgYAAAA="), spec.EncodingGzipBase64), "hello\n"},
		"without one":    {step.Secret("app", "token"), "aGVsbG8K"},
		"what is not it": {step.Encoded(step.Secret("app", "token"), spec.EncodingGzip), ""},
	} {
		got, err := c.text.Resolve(encoded{})
		if c.want == "" && (err == nil || strings.Contains(err.Error(), "aGVs")) ||
			c.want != "" && (err != nil || string(got.Reveal()) != c.want) {
			t.Errorf("%s: %q, %v", name, got.Reveal(), err)
		}
	}
}
