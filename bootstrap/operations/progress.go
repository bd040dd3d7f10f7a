// Copyright 2026 The cluster-api-provider-kubexm Authors.
// SPDX-License-Identifier: Apache-2.0

package operations

import (
	"cmp"
	"fmt"
	"slices"
	"strings"
	"time"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/utils/ptr"

	bootstrapv1 "github.com/mensylisir/cluster-api-provider-kubexm/bootstrap/api/v1beta1"
	"github.com/mensylisir/cluster-api-provider-kubexm/internal/hosthealth"
	"github.com/mensylisir/cluster-api-provider-kubexm/pkg/host"
	"github.com/mensylisir/cluster-api-provider-kubexm/pkg/spec"
)

// longest is how long a host's message may be.
const longest = 1000

// progress is one reconcile of an operation that has begun.
type progress struct {
	verb
	name    string
	started time.Time
	// created is when the object was: a move makes another one.
	created time.Time
	now     time.Time
	spec    *bootstrapv1.KubexmOperationSpec
	// configs are those that there still are, by name.
	configs map[string]*bootstrapv1.KubexmConfig
}

// advance takes in what came of the hosts that were asked, and returns which are to be asked now. It changes hosts in place.
func (p *progress) advance(hosts []bootstrapv1.HostOperationStatus) (ask []*bootstrapv1.HostOperationStatus) {
	running, failed := int32(0), ""
	for i := range hosts {
		h := &hosts[i]
		p.observe(h)
		switch h.Phase {
		case bootstrapv1.OperationRunning:
			running++
		case bootstrapv1.OperationFailed:
			failed = cmp.Or(failed, h.Name)
		}
	}
	for i := range hosts {
		h := &hosts[i]
		left := hosthealth.LeftAlone(p.configs[h.ConfigName])
		wasCut := h.Phase == bootstrapv1.OperationRunning && left == nil && p.wasCut(h)
		switch {
		case h.Phase != bootstrapv1.OperationPending && !wasCut:
		case p.disrupts && failed != "":
			p.end(h, bootstrapv1.OperationSkipped, "it has not begun, as it failed on the host "+failed)
		case wasCut:
			ask = append(ask, h) // it has its place
		case left != nil:
			h.Message = host.Text("it waits: "+left.Message, longest)
		case running >= ptr.Deref(p.spec.MaxConcurrent, p.atOnce):
			h.Message = "it waits for its turn"
		default:
			running++ // who waits for somebody else's request has its place, so that hosts begin in order
			if other := p.earlier(p.configs[h.ConfigName]); other != "" {
				h.Message = other
				continue
			}
			ask = append(ask, h)
		}
	}
	return ask
}

// observe takes in what came of one host.
func (p *progress) observe(h *bootstrapv1.HostOperationStatus) {
	if !h.EndTime.IsZero() {
		return
	}
	c := p.configs[h.ConfigName]
	if c == nil || !c.DeletionTimestamp.IsZero() {
		if h.Phase == bootstrapv1.OperationRunning {
			p.end(h, bootstrapv1.OperationFailed, "the host is leaving the cluster, or has left it")
		} else {
			p.end(h, bootstrapv1.OperationSkipped, "the host is leaving the cluster, or has left it")
		}
		return
	}
	h.Name = cmp.Or(c.Status.Host.Name, h.Name)
	closed := hosthealth.Closed(c)
	if asked := p.asked(c); asked.After(h.RequestTime.Time) { // and it could not be noted
		h.Phase, h.RequestTime = bootstrapv1.OperationRunning, metav1.NewTime(asked)
	}
	if h.Phase == bootstrapv1.OperationPending && closed != nil {
		p.end(h, bootstrapv1.OperationSkipped, closed.Message)
	}
	if h.Phase != bootstrapv1.OperationRunning {
		return
	}
	phase, message := p.result(c, h.RequestTime)
	if phase == bootstrapv1.OperationRunning && closed != nil {
		phase, message = bootstrapv1.OperationFailed, closed.Message
	}
	switch limit, left := p.limit(), hosthealth.LeftAlone(c); {
	case phase != bootstrapv1.OperationRunning:
		p.end(h, phase, message)
	case left != nil:
		h.Message = host.Text("its time does not count meanwhile: "+left.Message, longest)
	case p.now.Sub(p.since(h, c)) >= limit:
		p.end(h, bootstrapv1.OperationFailed, fmt.Sprintf("it has not ended within %s: %s", limit, message))
	default:
		h.Message = host.Text(message, longest)
	}
}

// since is from when a host that was asked has its time. While it was left alone, it could not do anything. What it did before a move is
// not known any more: it answers again.
func (p *progress) since(h *bootstrapv1.HostOperationStatus, c *bootstrapv1.KubexmConfig) time.Time {
	return slices.MaxFunc([]time.Time{h.RequestTime.Time, p.created, hosthealth.LeftAloneUntil(c)}, time.Time.Compare)
}

// wasCut reports whether a host that was to reboot does not do so any more because of a maintenance. A move loses what is known of those:
// who was asked before it is not asked twice.
func (p *progress) wasCut(h *bootstrapv1.HostOperationStatus) bool {
	c := p.configs[h.ConfigName]
	return p.kind == bootstrapv1.RebootType && hosthealth.Answer(c, bootstrapv1.RebootOperation, h.RequestTime.Time) == nil &&
		!hosthealth.MaintainedUntil(c).Before(h.RequestTime.Add(bootstrapv1.RebootTimeout))
}

func (p *progress) limit() time.Duration {
	return time.Duration(ptr.Deref(p.spec.TimeoutSeconds, int32(p.timeout/time.Second))) * time.Second
}

func (p *progress) end(h *bootstrapv1.HostOperationStatus, phase bootstrapv1.OperationPhase, message string) {
	h.Phase, h.EndTime, h.Message = phase, metav1.NewTime(p.now), host.Text(message, longest)
}

// request is what asks a host for it at a time.
func (p *progress) request(at time.Time) string {
	words := []string{at.UTC().Format(time.RFC3339)}
	switch p.kind {
	case bootstrapv1.RestartType:
		words = append(words, spec.JoinComponents(p.spec.Components))
	case bootstrapv1.RenewCertificatesType:
		words = append(words, spec.JoinCertificates(p.spec.Certificates))
	}
	return strings.Join(append(words, p.by()), " ")
}

// by is how a request names who made it, at its end.
func (p *progress) by() string { return "KubexmOperation/" + p.name }

// asked is when a host was asked for it by this operation, and not by an earlier one of its name; the zero time if it was not.
func (p *progress) asked(c *bootstrapv1.KubexmConfig) time.Time {
	at := c.Asked(p.annotation)
	if strings.HasSuffix(c.Annotations[p.annotation], " "+p.by()) && !at.Before(p.started) {
		return at
	}
	return time.Time{}
}

// earlier is what somebody else has asked the host for that it has not answered yet, "" if it has nothing to wait for. A request is known
// by its second from the one before it.
func (p *progress) earlier(c *bootstrapv1.KubexmConfig) string {
	at := c.Asked(p.annotation)
	switch {
	case at.IsZero():
		return ""
	case !at.Before(p.now.Truncate(time.Second)):
		return "it was asked for the same just now"
	case p.now.Sub(at) >= p.limit():
		return ""
	}
	if phase, _ := p.result(c, metav1.NewTime(at)); phase == bootstrapv1.OperationRunning {
		return "it waits for what was asked for at " + at.UTC().Format(time.RFC3339)
	}
	return ""
}

// sum is how an operation stands: with how many of its hosts it has ended, whether with all, and on which it was not done.
func sum(hosts []bootstrapv1.HostOperationStatus) (summary string, ended bool, failures []string) {
	n := 0
	for _, h := range hosts {
		switch h.Phase {
		case bootstrapv1.OperationFailed, bootstrapv1.OperationSkipped:
			failures = append(failures, fmt.Sprintf("%s %s", h.Name, strings.ToLower(string(h.Phase))))
			n++
		case bootstrapv1.OperationSucceeded:
			n++
		}
	}
	return fmt.Sprintf("%d/%d", n, len(hosts)), n == len(hosts), failures
}
