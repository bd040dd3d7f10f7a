// Copyright 2026 The cluster-api-provider-kubexm Authors.
// SPDX-License-Identifier: Apache-2.0

// Package certs finds the certificates on all hosts of a cluster, and judges how much longer they are good.
package certs

import (
	"context"
	"time"

	"github.com/mensylisir/cluster-api-provider-kubexm/pkg/certificate"
	"github.com/mensylisir/cluster-api-provider-kubexm/pkg/engine"
	"github.com/mensylisir/cluster-api-provider-kubexm/pkg/host"
)

// Status is how much longer a certificate is good.
type Status string

const (
	// Good is one that is good for long enough.
	Good Status = "Good"
	// Ending is one that ends soon.
	Ending Status = "Ending"
	// Expired is one that is good no more.
	Expired Status = "Expired"
	// Unreadable is a file that should hold one.
	Unreadable Status = "Unreadable"
)

// Certificate is a file with a certificate on a host. Without a path, it stands for what could not be read.
type Certificate struct {
	Cluster string `json:"cluster"`
	Host    string `json:"host"`
	certificate.File
	// DaysLeft are whole days; below 0 it has ended.
	DaysLeft int    `json:"daysLeft"`
	Status   Status `json:"status"`
}

// Of observes all hosts of a cluster at once: one exchange with each. Those that end within warn are Ending. The certificates
// of the hosts that answered, in the order of hosts, come beside the error, which names those that did not.
func Of(
	ctx context.Context, e *engine.Engine, cluster string, hosts []string, now time.Time, warn time.Duration,
) ([]Certificate, error) {
	facts, err := e.Look(ctx, hosts, func(string) host.Query { return certificate.Query() })
	all := []Certificate{}
	for _, name := range hosts {
		if facts[name] == nil {
			continue
		}
		found, unread := certificate.In(facts[name])
		if unread != nil {
			found = append(found, certificate.File{Message: unread.Error()})
		}
		for _, f := range found {
			c := Certificate{Cluster: cluster, Host: name, File: f}
			c.judge(now, warn)
			all = append(all, c)
		}
	}
	return all, err
}

// judge says how much longer the certificate is good.
func (c *Certificate) judge(now time.Time, warn time.Duration) {
	left := c.NotAfter.Sub(now)
	c.DaysLeft = int(left / (24 * time.Hour))
	switch {
	case c.Message != "":
		c.Status, c.DaysLeft = Unreadable, 0
	case left <= 0:
		c.Status, c.DaysLeft = Expired, c.DaysLeft-1
	case left < warn:
		c.Status = Ending
	default:
		c.Status = Good
	}
}
