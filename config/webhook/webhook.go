// Copyright 2026 The cluster-api-provider-kubexm Authors.
// SPDX-License-Identifier: Apache-2.0

// Package webhook has the webhook configurations of all three providers, a directory each, generated from their webhooks.
package webhook

import (
	"bufio"
	"bytes"
	"embed"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"path"

	admissionregistrationv1 "k8s.io/api/admissionregistration/v1"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/runtime/serializer"
	utilyaml "k8s.io/apimachinery/pkg/util/yaml"
)

//go:embed */manifests.yaml
var generated embed.FS

// Configurations are what has an API server ask our webhooks. Each object is a new one.
type Configurations struct {
	Mutating   []*admissionregistrationv1.MutatingWebhookConfiguration
	Validating []*admissionregistrationv1.ValidatingWebhookConfiguration
}

// All are the configurations of all providers. Their names begin with their provider's. They point to a Service: anyone who
// serves webhooks in another way points them there.
func All() (*Configurations, error) {
	scheme := runtime.NewScheme()
	if err := admissionregistrationv1.AddToScheme(scheme); err != nil {
		return nil, err
	}
	decoder := serializer.NewCodecFactory(scheme, serializer.EnableStrict).UniversalDeserializer()
	files, err := fs.Glob(generated, "*/*.yaml")
	if err != nil {
		return nil, fmt.Errorf("list the embedded webhook configurations: %w", err)
	}
	all := &Configurations{}
	for _, name := range files {
		data, err := fs.ReadFile(generated, name)
		if err != nil {
			return nil, fmt.Errorf("read the embedded webhook configurations %s: %w", name, err)
		}
		if err := all.add(decoder, path.Dir(name), data); err != nil {
			return nil, fmt.Errorf("decode the embedded webhook configurations %s: %w", name, err)
		}
	}
	return all, nil
}

func (c *Configurations) add(decoder runtime.Decoder, provider string, data []byte) error {
	documents := utilyaml.NewYAMLReader(bufio.NewReader(bytes.NewReader(data)))
	for {
		document, err := documents.Read()
		if errors.Is(err, io.EOF) {
			return nil
		} else if err != nil {
			return err
		}
		object, _, err := decoder.Decode(document, nil, nil)
		if err != nil {
			return err
		}
		switch configuration := object.(type) {
		case *admissionregistrationv1.MutatingWebhookConfiguration:
			configuration.Name = provider + "-" + configuration.Name
			c.Mutating = append(c.Mutating, configuration)
		case *admissionregistrationv1.ValidatingWebhookConfiguration:
			configuration.Name = provider + "-" + configuration.Name
			c.Validating = append(c.Validating, configuration)
		default:
			return fmt.Errorf("unexpected %T", object)
		}
	}
}
