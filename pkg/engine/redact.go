// Copyright 2026 The cluster-api-provider-kubexm Authors.
// SPDX-License-Identifier: Apache-2.0

package engine

import (
	"cmp"
	"encoding/base64"
	"errors"
	"slices"
	"strings"
	"sync"

	"github.com/mensylisir/cluster-api-provider-kubexm/pkg/host"
	"github.com/mensylisir/cluster-api-provider-kubexm/pkg/secret"
)

// redactor takes the secrets that a run has met out of what it tells. Nothing should put them there; this is for the
// command that prints its input, or the error of a library that quotes it.
type redactor struct {
	mu       sync.Mutex
	known    map[string]bool
	replacer *strings.Replacer // nil when known has grown since
}

const (
	// shortestSecret: shorter values would take ordinary words out of messages.
	shortestSecret = 6
	// shortestWord is from where on a word of a longer secret (a line of a key, a token in a kubeconfig) is taken out
	// wherever it stands.
	shortestWord = 20
)

// learn adds a value, its words, and its base64 form.
func (r *redactor) learn(value []byte) {
	r.mu.Lock()
	defer r.mu.Unlock()
	if r.known == nil {
		r.known = make(map[string]bool)
	}
	text := strings.TrimSpace(string(value))
	r.add(text, shortestSecret)
	r.add(base64.StdEncoding.EncodeToString(value), shortestSecret)
	for _, word := range strings.Fields(text) {
		r.add(strings.Trim(word, `"',`), shortestWord)
	}
}

func (r *redactor) add(s string, shortest int) {
	if len(s) >= shortest && !r.known[s] {
		r.known[s], r.replacer = true, nil
	}
}

// text is s without secrets.
func (r *redactor) text(s string) string {
	if s == "" {
		return s
	}
	r.mu.Lock()
	defer r.mu.Unlock()
	if len(r.known) == 0 {
		return s
	}
	if r.replacer == nil {
		// The longest first: a whole value is replaced as one, not word by word.
		words := make([]string, 0, len(r.known))
		for w := range r.known {
			words = append(words, w)
		}
		slices.SortFunc(words, func(a, b string) int { return cmp.Or(cmp.Compare(len(b), len(a)), cmp.Compare(a, b)) })
		pairs := make([]string, 0, 2*len(words))
		for _, w := range words {
			pairs = append(pairs, w, secret.Redacted)
		}
		r.replacer = strings.NewReplacer(pairs...)
	}
	return r.replacer.Replace(s)
}

// err is err itself when it tells no secret, else an error that tells none and is recognized in the same way (errors.Is,
// and errors.As for *host.Error).
func (r *redactor) err(err error) error {
	if err == nil {
		return nil
	}
	clean := &redacted{message: r.text(err.Error()), cause: err}
	same := clean.message == err.Error()
	var he *host.Error
	if errors.As(err, &he) {
		c := *he
		c.Message, c.Output, c.Remedy = r.text(he.Message), r.text(he.Output), r.text(he.Remedy)
		same = same && c.Message == he.Message && c.Output == he.Output && c.Remedy == he.Remedy
		if he.Err != nil {
			c.Err = r.err(he.Err)
			same = same && c.Err == he.Err //nolint:errorlint // the very same error
		}
		clean.host = &c
	}
	switch {
	case same:
		return err
	case err == error(he): //nolint:errorlint // the very same error
		return clean.host
	}
	return clean
}

// redacted stands for an error that told a secret. It has no Unwrap, on purpose.
type redacted struct {
	message string
	host    *host.Error
	cause   error
}

// Error is the message without secrets.
func (r *redacted) Error() string { return r.message }

// Is compares the cause.
func (r *redacted) Is(target error) bool { return errors.Is(r.cause, target) }

// As gives the host's error without secrets.
func (r *redacted) As(target any) bool {
	he, ok := target.(**host.Error)
	if ok && r.host != nil {
		*he = r.host
		return true
	}
	return false
}
