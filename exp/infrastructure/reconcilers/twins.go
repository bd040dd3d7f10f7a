// Copyright 2026 The cluster-api-provider-kubexm Authors.
// SPDX-License-Identifier: Apache-2.0

package reconcilers

import (
	"cmp"
	"context"
	"crypto/sha256"
	"encoding/base64"
	"fmt"
	"net"
	"slices"
	"strconv"
	"strings"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"sigs.k8s.io/cluster-api/util/conditions"
	"sigs.k8s.io/controller-runtime/pkg/client"

	infrav1 "github.com/mensylisir/cluster-api-provider-kubexm/exp/infrastructure/api/v1alpha1"
)

// identities are what KubexmHosts have that no two machines share, and the host keys that clones do.
type identities struct {
	// machines are hosts by what tells machines apart, keys by their host key.
	machines, keys map[string][]*infrav1.KubexmHost
}

// identitiesOf reads them off hosts of whatever namespaces.
func identitiesOf(hosts []infrav1.KubexmHost) *identities {
	ids := &identities{machines: map[string][]*infrav1.KubexmHost{}, keys: map[string][]*infrav1.KubexmHost{}}
	for i := range hosts {
		h := &hosts[i]
		for _, id := range machineOf(h) {
			ids.machines[id] = append(ids.machines[id], h)
		}
		for _, key := range keysOf(h) {
			ids.keys[key] = append(ids.keys[key], h)
		}
	}
	return ids
}

// readIdentities reads those of all hosts that the manager sees.
func (o *Options) readIdentities(ctx context.Context) (*identities, error) {
	all := &infrav1.KubexmHostList{}
	if err := o.Client.List(ctx, all); err != nil {
		return nil, fmt.Errorf("list the KubexmHosts of all namespaces: %w", err)
	}
	return identitiesOf(all.Items), nil
}

// machineOf is what tells the host's machine from others, in words: where it is dialled, and its machine-id once it was seen. An address
// behind one jump host is not that behind another.
func machineOf(h *infrav1.KubexmHost) []string {
	address := "the address " + net.JoinHostPort(h.Spec.Address, strconv.Itoa(int(cmp.Or(h.Spec.Access.Port, 22))))
	if jump := h.Spec.Access.ProxyJump; !jump.IsZero() {
		address += " behind the jump host " + jump.Endpoint()
	}
	ids := []string{address}
	if id := h.Status.Facts.MachineID; id != "" {
		ids = append(ids, "the machine-id "+id)
	}
	return ids
}

// keysOf are the fingerprints of the host's keys, as ssh-keygen -l prints them, however the keys are pinned.
func keysOf(h *infrav1.KubexmHost) []string {
	var keys []string
	for _, key := range h.Spec.Access.HostKeys.Pinned {
		if pin := fingerprintOf(key); !slices.Contains(keys, pin) {
			keys = append(keys, pin)
		}
	}
	return keys
}

func fingerprintOf(key string) string {
	pin := strings.Fields(key)
	if len(pin) < 2 { // a fingerprint
		return strings.TrimRight(strings.Join(pin, " "), "=")
	}
	blob, err := base64.StdEncoding.DecodeString(pin[1])
	if err != nil {
		return strings.Join(pin[:2], " ")
	}
	sum := sha256.Sum256(blob)
	return "SHA256:" + base64.RawStdEncoding.EncodeToString(sum[:])
}

// sharers are the other hosts that have a key of the host.
func (i *identities) sharers(h *infrav1.KubexmHost) []*infrav1.KubexmHost {
	var found []*infrav1.KubexmHost
	for _, key := range keysOf(h) {
		for _, other := range i.keys[key] {
			if nameOf(other) != nameOf(h) && !slices.Contains(found, other) {
				found = append(found, other)
			}
		}
	}
	return found
}

func nameOf(h *infrav1.KubexmHost) string { return h.Namespace + "/" + h.Name }

// foreign is what hosts of other namespaces are called: what there is in a namespace is nobody else's business.
const foreign = "a KubexmHost of another namespace"

// calledFor is what a host is called in messages of h.
func calledFor(h, other *infrav1.KubexmHost) string {
	if other.Namespace != h.Namespace {
		return foreign
	}
	return "the KubexmHost " + nameOf(other)
}

// twin is another KubexmHost that is the same machine, and by what that shows.
type twin struct {
	*infrav1.KubexmHost
	shares string
}

// twinsOf are the other KubexmHosts that are the host's machine, by their names. Of another namespace, an address is a claim that anybody
// may make, and would keep the host from its own: it counts where somebody has logged in there by the key that is declared, as far as the
// machine-ids seen allow. The owner record on the machine keeps two clusters apart whatever is declared.
func (i *identities) twinsOf(h *infrav1.KubexmHost) []twin {
	return slices.DeleteFunc(i.alike(h), func(t twin) bool {
		is, own := t.Status.Facts.MachineID, h.Status.Facts.MachineID
		return t.Namespace != h.Namespace && (is == "" || own != "" && own != is)
	})
}

// alike are the other KubexmHosts that share an address or a machine-id with the host, by their names.
func (i *identities) alike(h *infrav1.KubexmHost) []twin {
	var found []twin
	for _, id := range machineOf(h) {
		for _, other := range i.machines[id] {
			same := func(t twin) bool { return nameOf(t.KubexmHost) == nameOf(other) }
			if nameOf(other) != nameOf(h) && !slices.ContainsFunc(found, same) {
				found = append(found, twin{other, id})
			}
		}
	}
	slices.SortFunc(found, func(a, b twin) int { return cmp.Compare(nameOf(a.KubexmHost), nameOf(b.KubexmHost)) })
	return found
}

// refuses says why a free host may not be claimed because of its twins: one of them is claimed or not clean, or, lest two claims
// race, another one comes first. It is nil where nothing speaks against it.
func (i *identities) refuses(h *infrav1.KubexmHost) *state {
	if i == nil {
		return nil
	}
	twins := i.twinsOf(h)
	at := slices.IndexFunc(twins, func(t twin) bool {
		return t.Spec.ClaimRef != (infrav1.MachineReference{}) || conditions.IsFalse(t, infrav1.CleanCondition)
	})
	if at < 0 {
		at = slices.IndexFunc(twins, func(t twin) bool { return nameOf(t.KubexmHost) < nameOf(h) })
	}
	if at < 0 {
		return nil
	}
	return &state{
		reason: infrav1.SameMachineReason, refusal: "the same machine as another KubexmHost",
		message: fmt.Sprintf("%s has %s too: one machine must not be handed out twice.\nRemedy: delete one of the two, or correct its address.",
			calledFor(h, twins[at].KubexmHost), twins[at].shares),
	}
}

// mostNamed is how many other hosts a message names.
const mostNamed = 10

// unique is the host's condition Unique.
func (i *identities) unique(h *infrav1.KubexmHost) metav1.Condition {
	c := metav1.Condition{Type: infrav1.UniqueCondition, Status: metav1.ConditionTrue, Reason: infrav1.UniqueReason}
	var lines []string
	for _, t := range i.twinsOf(h) {
		line := fmt.Sprintf("%s has %s too", calledFor(h, t.KubexmHost), t.shares)
		if !slices.Contains(lines, line) {
			lines = append(lines, line)
		}
	}
	if len(lines) > 0 {
		c.Status, c.Reason = metav1.ConditionFalse, infrav1.SameMachineReason
		c.Message = strings.Join(lines[:min(mostNamed, len(lines))], "\n") + "\nRemedy: delete all but one, or correct their addresses; give clones machine-ids of their own."
		return c
	}
	var names []string
	for _, other := range i.sharers(h) {
		if name := calledFor(h, other); !slices.Contains(names, name) {
			names = append(names, name)
		}
	}
	if len(names) > 0 {
		slices.Sort(names)
		more := ""
		if len(names) > mostNamed {
			more = fmt.Sprintf(" and %d more", len(names)-mostNamed)
		}
		c.Reason = infrav1.SharedHostKeyReason
		c.Message = fmt.Sprintf("Warning: the host's key is also that of %s%s: it does not tell them apart when their addresses move.\n"+
			"Remedy: give each host a key of its own (ssh-keygen -A after the removal of /etc/ssh/ssh_host_*) and pin that.",
			strings.Join(names[:min(mostNamed, len(names))], ", "), more)
	}
	return c
}

// SharedBy are the hosts that an event of one concerns besides: those that are the same machine, or have the same host key. Those for
// which it counts are not always those that count for it.
func SharedBy(h *infrav1.KubexmHost, all []infrav1.KubexmHost) []client.ObjectKey {
	ids := identitiesOf(all)
	var keys []client.ObjectKey
	for _, t := range ids.alike(h) {
		keys = append(keys, client.ObjectKeyFromObject(t))
	}
	for _, other := range ids.sharers(h) {
		if key := client.ObjectKeyFromObject(other); !slices.Contains(keys, key) {
			keys = append(keys, key)
		}
	}
	return keys
}
