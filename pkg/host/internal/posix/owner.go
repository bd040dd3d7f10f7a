// Copyright 2026 The cluster-api-provider-kubexm Authors.
// SPDX-License-Identifier: Apache-2.0

package posix

import (
	"context"
	"encoding/json"
	"strings"

	"github.com/mensylisir/cluster-api-provider-kubexm/pkg/host"
)

const fileMachineID = "/etc/machine-id"

// machineID is what the file says, "" where the machine has none yet. s_own reads it by the same rule.
func machineID(content []byte) string {
	id := strings.TrimSuffix(firstLine(content), "\n")
	if strings.Trim(id, "0123456789abcdef") != "" || len(id) > 64 {
		return ""
	}
	return id
}

// own tells from what the host's files say whose it is.
func (h *Host) own(f *host.Facts, files map[string][]byte) {
	record, found := files[h.config.StateDir+"/"+host.OwnerFile]
	if !found {
		return
	}
	o, err := host.ReadOwner(record)
	if err != nil {
		f.OwnerUnreadable = err.Error()
		return
	}
	f.Owner = o
}

// record is the claim's owner as it is written, up to the machine's id, which s_own adds.
func record(o host.Owner) (string, error) {
	o.MachineID = ""
	content, err := json.Marshal(o)
	return strings.TrimSuffix(string(content), "}") + ",", err
}

// admit compares the claim with what the host says of its owner, and takes the host over where that is what is claimed. The
// record of a host that nobody has changed was written before it was read.
func (s *session) admit(ctx context.Context) error {
	claim := s.run.Ownership
	seen := &host.Facts{
		System: s.system, Owner: s.owner, OwnerUnreadable: s.unreadable, Journal: s.logs.journal, UndoEntries: len(s.logs.entries),
	}
	if err := claim.Check(s.host.Name(), seen); err != nil {
		return err
	}
	if claim.IsZero() || claim.Owns(seen) {
		return nil
	}
	return s.takeOver(ctx, claim, seen)
}

// takeOver writes the claim's record over what is there. What another cluster's runs have finished is forgotten before: cut in
// between, the host is the other's still.
func (s *session) takeOver(ctx context.Context, claim host.Ownership, seen *host.Facts) error {
	line, err := record(claim.Owner)
	if err != nil {
		return s.host.invalid("", err)
	}
	sc := &script{}
	forget := seen.Owner != nil && seen.Owner.Authority != claim.Owner.Authority
	if forget {
		sc.line(`: >"$S/journal" && sync "$S/journal" || exit`)
	}
	sc.call("s_own", line, "over")
	code, err := s.ask(ctx, sc.String(), func(f frame) error { return s.host.unexpected(f) })
	if err != nil {
		return err
	}
	if code != 0 {
		return s.host.commandError("", "cannot write the record of the owner", code, s.proc.stderr.String())
	}
	if forget {
		s.logs.journal = map[string]host.JournalEntry{}
	}
	owner := claim.Owner
	owner.MachineID = s.system.MachineID
	s.owner, s.unreadable = &owner, ""
	return nil
}
