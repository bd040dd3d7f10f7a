// Copyright 2026 The cluster-api-provider-kubexm Authors.
// SPDX-License-Identifier: Apache-2.0

package embedded

import (
	"context"
	"crypto/tls"
	"errors"
	"fmt"
	"net/netip"

	admissionregistrationv1 "k8s.io/api/admissionregistration/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/util/sets"
	"k8s.io/utils/ptr"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/webhook"

	"github.com/mensylisir/cluster-api-provider-kubexm/exp/embedded/crds"
	"github.com/mensylisir/cluster-api-provider-kubexm/pkg/pki"
)

// admissionName is that of the two configurations that hold all webhooks of the plane.
const admissionName = "kubexm-embedded"

// webhookServer serves on the loopback address, with a certificate that nobody else has seen.
func webhookServer(port uint16, pair pki.KeyPair) (webhook.Server, error) {
	certificate, err := tls.X509KeyPair(pair.Cert, pair.Key.Reveal())
	if err != nil {
		return nil, err
	}
	return webhook.NewServer(webhook.Options{
		Host: loopback.String(),
		Port: int(port),
		TLSOpts: []func(*tls.Config){func(c *tls.Config) {
			c.GetCertificate = func(*tls.ClientHelloInfo) (*tls.Certificate, error) { return &certificate, nil }
		}},
	}), nil
}

// admission are all webhooks of the plane.
type admission struct {
	mutating   *admissionregistrationv1.MutatingWebhookConfiguration
	validating *admissionregistrationv1.ValidatingWebhookConfiguration
}

// newAdmission gathers core's webhooks and the caller's and turns the Services that they call into URLs of the webhook
// server on port, for which authority (PEM) vouches.
func newAdmission(o Options, port uint16, authority []byte) (admission, error) {
	meta := metav1.ObjectMeta{Name: admissionName}
	all := admission{
		mutating:   &admissionregistrationv1.MutatingWebhookConfiguration{ObjectMeta: meta},
		validating: &admissionregistrationv1.ValidatingWebhookConfiguration{ObjectMeta: meta},
	}
	mutating, validating, err := crds.Webhooks()
	if err != nil {
		return all, err
	}
	for _, c := range append([]*admissionregistrationv1.MutatingWebhookConfiguration{mutating}, o.MutatingWebhooks...) {
		all.mutating.Webhooks = append(all.mutating.Webhooks, c.DeepCopy().Webhooks...)
	}
	for _, c := range append([]*admissionregistrationv1.ValidatingWebhookConfiguration{validating}, o.ValidatingWebhooks...) {
		all.validating.Webhooks = append(all.validating.Webhooks, c.DeepCopy().Webhooks...)
	}

	names := sets.New[string]()
	redirect := func(name string, c *admissionregistrationv1.WebhookClientConfig) error {
		if names.Has(name) {
			return fmt.Errorf("webhook %s: there are two of it", name)
		}
		names.Insert(name)
		if c.Service == nil || c.Service.Path == nil {
			return fmt.Errorf("webhook %s: it names no Service with a path", name)
		}
		*c = admissionregistrationv1.WebhookClientConfig{
			URL:      ptr.To("https://" + netip.AddrPortFrom(loopback, port).String() + *c.Service.Path),
			CABundle: authority,
		}
		return nil
	}
	var errs []error
	for i := range all.mutating.Webhooks {
		errs = append(errs, redirect(all.mutating.Webhooks[i].Name, &all.mutating.Webhooks[i].ClientConfig))
	}
	for i := range all.validating.Webhooks {
		errs = append(errs, redirect(all.validating.Webhooks[i].Name, &all.validating.Webhooks[i].ClientConfig))
	}
	return all, errors.Join(errs...)
}

// install puts the configurations in the place of those of the last process, whose webhook server had another port.
func (a *admission) install(ctx context.Context, c client.Client) error {
	for _, wanted := range []client.Object{a.mutating, a.validating} {
		found := wanted.DeepCopyObject().(client.Object)
		err := c.Get(ctx, client.ObjectKeyFromObject(wanted), found)
		switch {
		case err == nil:
			wanted.SetResourceVersion(found.GetResourceVersion())
			err = c.Update(ctx, wanted)
		case apierrors.IsNotFound(err):
			err = c.Create(ctx, wanted)
		}
		if err != nil {
			return fmt.Errorf("%T: %w", wanted, err)
		}
	}
	return nil
}
