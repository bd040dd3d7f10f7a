// Copyright 2026 The cluster-api-provider-kubexm Authors.
// SPDX-License-Identifier: Apache-2.0

package reconcilers

import (
	"context"
	"errors"
	"fmt"
	"strings"
	"time"

	corev1 "k8s.io/api/core/v1"
	"sigs.k8s.io/controller-runtime/pkg/client"

	bootstrapv1 "github.com/mensylisir/cluster-api-provider-kubexm/bootstrap/api/v1beta1"
	"github.com/mensylisir/cluster-api-provider-kubexm/pkg/host/bmc"
	"github.com/mensylisir/cluster-api-provider-kubexm/pkg/host/recovery"
	"github.com/mensylisir/cluster-api-provider-kubexm/pkg/secret"
	"github.com/mensylisir/cluster-api-provider-kubexm/pkg/spec"
)

// byController has the reboot of the scope's host reset its machine by the management controller, if one is declared. How is what was done,
// "" if nothing was.
func (r *KubexmConfigReconciler) byController(s *scope, reboot *recovery.Reboot, how *bmc.ResetType) {
	if s.host.BMC.IsZero() {
		return
	}
	declared, namespace, key := s.host.BMC, s.config.Namespace, s.key
	reboot.Controller = &recovery.Controller{
		Last: lastReset(s.config),
		// A status may be lost with a move, and the machine must not be reset again while it boots.
		Record: func(ctx context.Context, reset recovery.Reset) error {
			config := &bootstrapv1.KubexmConfig{}
			config.Namespace, config.Name = key.Namespace, key.Name
			patch := fmt.Appendf(nil, `{"metadata":{"annotations":{%q:%q}}}`, bootstrapv1.MachineResetAnnotation, recorded(reset))
			return r.Client.Patch(ctx, config, client.RawPatch(client.Merge.Type(), patch))
		},
		Reset: func(ctx context.Context) (bool, error) {
			c, err := r.controller(ctx, namespace, declared)
			if err != nil {
				return false, err
			}
			*how, err = c.Reset(ctx)
			return err == nil || errors.Is(err, bmc.ErrUnanswered), err
		},
	}
}

// recorded is a reset as the value of MachineResetAnnotation, and lastReset the one that is recorded, or none.
func recorded(reset recovery.Reset) string {
	at := reset.Time.UTC().Format(time.RFC3339)
	if reset.Refused {
		at += bootstrapv1.MachineResetRefused
	}
	return at
}

func lastReset(config *bootstrapv1.KubexmConfig) recovery.Reset {
	value, refused := strings.CutSuffix(config.Annotations[bootstrapv1.MachineResetAnnotation], bootstrapv1.MachineResetRefused)
	at, err := time.Parse(time.RFC3339, value)
	if err != nil {
		return recovery.Reset{}
	}
	return recovery.Reset{Time: at, Refused: refused}
}

// controller is a management controller with the credentials that its Secret has at that time.
func (r *KubexmConfigReconciler) controller(ctx context.Context, namespace string, declared spec.BMC) (*bmc.Controller, error) {
	const path = "spec.bmc.secretRef"
	name := declared.SecretRef.Name
	s, err := r.secret(ctx, client.ObjectKey{Namespace: namespace, Name: name})
	if err != nil {
		return nil, fmt.Errorf("%s: %w", path, err)
	}
	if err := labelled(s, bootstrapv1.ForHostsCredentials, "no management controller is asked with it"); err != nil {
		return nil, fmt.Errorf("%s: %w", path, err)
	}
	user, password := s.Data[corev1.BasicAuthUsernameKey], s.Data[corev1.BasicAuthPasswordKey]
	if len(user) == 0 || len(password) == 0 {
		return nil, fmt.Errorf("%s: the Secret %s lacks %s or %s", path, name, corev1.BasicAuthUsernameKey, corev1.BasicAuthPasswordKey)
	}
	return &bmc.Controller{
		Address: declared.Address, SystemID: declared.SystemID, User: string(user), Password: secret.New(password),
		Authorities: []byte(declared.Certificate.CABundle), Fingerprint: declared.Certificate.SHA256Fingerprint,
	}, nil
}
