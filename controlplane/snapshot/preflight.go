// Copyright 2026 The cluster-api-provider-kubexm Authors.
// SPDX-License-Identifier: Apache-2.0

package snapshot

import (
	"fmt"
	"strings"

	controlplanev1 "github.com/mensylisir/cluster-api-provider-kubexm/controlplane/api/v1beta1"
	"github.com/mensylisir/cluster-api-provider-kubexm/internal/decision"
)

// APIs is what was found out of the use of APIs that the declared version does not serve.
type APIs struct {
	// Err is why that is not known.
	Err error
	// Removed are those that are in use, each in one line with who uses it.
	Removed []string
}

// AsksForAPIs reports whether it matters which APIs are in use: before the first host gets another version.
func (c *ControlPlane) AsksForAPIs() bool {
	return c.Changing() && c.Object.Annotations[controlplanev1.AcceptedRemovedAPIsAnnotation] != c.Object.Spec.Version
}

// preflight lets nothing of the rollout of another version begin while APIs are in use that it does not serve: anyone who uses them would
// find out by failing.
func (c *ControlPlane) preflight(d Decision) Decision {
	if c.APIs == nil || !c.begins(d) || !c.AsksForAPIs() {
		return d
	}
	version := c.Object.Spec.Version
	accept := fmt.Sprintf("kubectl annotate kubexmcontrolplane -n %s %s %s=%s --overwrite",
		c.Object.Namespace, c.Object.Name, controlplanev1.AcceptedRemovedAPIsAnnotation, version)
	switch {
	case c.APIs.Err != nil:
		return Decision{
			Blocked: decision.Block(controlplanev1.APIsUnknownReason, "it is not known whether APIs are in use that %s does not serve: %v", version, c.APIs.Err),
			Preflight: decision.Block(controlplanev1.APIsUnknownReason, "it is not known whether APIs are in use that %s does not "+
				"serve, which is tried again every minute: %v. To begin all the same: %s", version, c.APIs.Err, accept),
		}
	case len(c.APIs.Removed) > 0:
		return Decision{
			Blocked: decision.Block(controlplanev1.RemovedAPIsInUseReason, "APIs are in use that %s does not serve (see PreflightPassed)", version),
			Preflight: decision.Block(controlplanev1.RemovedAPIsInUseReason, "APIs are in use that %s does not serve:\n* %s\n"+
				"Have who uses them use another version; who that is, the API server's audit log says in requests with the annotation "+
				"k8s.io/deprecated. That somebody has asked is forgotten when the API servers are restarted. To begin all the same: %s",
				version, strings.Join(c.APIs.Removed, "\n* "), accept),
		}
	}
	return d
}
