// Copyright 2026 The cluster-api-provider-kubexm Authors.
// SPDX-License-Identifier: Apache-2.0

package posix

import (
	"context"
	"encoding/json"

	"github.com/mensylisir/cluster-api-provider-kubexm/pkg/host"
)

// serial tells from what the host's files say with which state it was changed last.
func (h *Host) serial(f *host.Facts, files map[string][]byte) {
	record, found := files[h.config.StateDir+"/"+host.SerialFile]
	if !found {
		return
	}
	s, err := host.ReadSerial(record)
	if err != nil {
		f.SerialUnreadable = err.Error()
		return
	}
	f.Serial = s
}

// supersede compares the serial with the host's and writes it. The lock is held, so that of two that go on from the same number one alone
// gets through.
func (s *session) supersede(ctx context.Context, serial host.Serial) error {
	if err := serial.CheckSerial(s.host.Name(), &host.Facts{Serial: s.serial}); err != nil {
		return err
	}
	if is := (&host.Facts{Serial: s.serial}).SerialOf(serial.Authority); is != nil && is.Same(serial) {
		return nil
	}
	content, err := json.Marshal(serial)
	if err != nil {
		return s.host.invalid("", err)
	}
	sc := &script{}
	sc.call("s_serial", string(content))
	code, err := s.ask(ctx, sc.String(), func(f frame) error { return s.host.unexpected(f) })
	if err != nil {
		return err
	}
	if code != 0 {
		return s.host.commandError("", "cannot write the record of the state's serial", code, s.proc.said())
	}
	s.serial, s.serialUnreadable = &serial, ""
	return nil
}
