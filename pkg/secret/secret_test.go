// Copyright 2026 The cluster-api-provider-kubexm Authors.
// SPDX-License-Identifier: Apache-2.0

package secret_test

import (
	"bytes"
	"encoding/json"
	"fmt"
	"log/slog"
	"strings"
	"testing"

	"github.com/go-logr/logr/funcr"

	"github.com/mensylisir/cluster-api-provider-kubexm/pkg/secret"
)

const word = "Qcloud@123"

// holder has a secret where fmt cannot reach its methods.
type holder struct {
	Name   string
	Shown  secret.Value
	hidden secret.Value
}

func TestNothingThatPrintsShowsIt(t *testing.T) {
	value := secret.New(word)
	in := holder{Name: "node1", Shown: value, hidden: value}
	seen := map[string]string{}
	for _, verb := range []string{"%v", "%+v", "%#v", "%s", "%q", "%x", "%X", "%d", "%T", "%10.3s", "% x"} {
		seen["value "+verb] = fmt.Sprintf(verb, value)
		seen["pointer "+verb] = fmt.Sprintf(verb, &value)
		seen["struct "+verb] = fmt.Sprintf(verb, in)
		seen["slice "+verb] = fmt.Sprintf(verb, []secret.Value{value})
	}
	seen["error"] = fmt.Errorf("login as ops with %v", value).Error()

	encoded, err := json.Marshal(map[string]any{"in": in, "value": value})
	if err != nil {
		t.Fatal(err)
	}
	seen["json"] = string(encoded)

	var log bytes.Buffer
	slog.New(slog.NewJSONHandler(&log, nil)).Info("login", "password", value, "in", in)
	seen["slog"] = log.String()
	funcr.New(func(prefix, args string) { seen["logr"] = prefix + args }, funcr.Options{}).Info("login", "password", value)

	for where, text := range seen {
		for _, leak := range []string{word, fmt.Sprintf("%x", word), fmt.Sprintf("%X", word), fmt.Sprintf("% x", word), word[:3]} {
			if strings.Contains(text, leak) {
				t.Errorf("%s shows the secret: %s", where, text)
			}
		}
	}
	if want := `"value":"(redacted)"`; !strings.Contains(seen["json"], want) {
		t.Errorf("json %s lacks %s", seen["json"], want)
	}
}

func TestValue(t *testing.T) {
	source := []byte(word)
	value := secret.New(source)
	source[0] = 'X'
	if got := string(value.Reveal()); got != word {
		t.Errorf("the Value changed with its source: %q", got)
	}
	value.Reveal()[0] = 'X'
	if got := string(value.Reveal()); got != word {
		t.Errorf("the Value changed with what it revealed: %q", got)
	}
	if !value.Equal(secret.New(word)) || value.Equal(secret.New("other")) || value.Equal(secret.Value{}) {
		t.Error("Equal does not compare what is held")
	}
	if zero := secret.New(""); !zero.IsZero() || zero.String() != "" || zero.Reveal() != nil || !zero.Equal(secret.Value{}) {
		t.Error("an empty secret is not the zero Value")
	}
}

func TestARedactedValueIsNotReadBack(t *testing.T) {
	var in holder
	if err := json.Unmarshal([]byte(`{"Shown":"(redacted)"}`), &in); err == nil {
		t.Error("a redacted secret was read as if it were one")
	}
	if err := json.Unmarshal([]byte(`{"Shown":""}`), &in); err != nil || !in.Shown.IsZero() {
		t.Errorf("the zero Value does not survive JSON: %v", err)
	}
}
