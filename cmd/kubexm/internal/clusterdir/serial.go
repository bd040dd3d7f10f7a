// Copyright 2026 The cluster-api-provider-kubexm Authors.
// SPDX-License-Identifier: Apache-2.0

package clusterdir

import (
	"encoding/json"
	"errors"
	"fmt"
	"io/fs"
	"os"

	"github.com/mensylisir/cluster-api-provider-kubexm/pkg/host"
)

const serialFile = "serial.json"

// Serial tells this copy of the state from others, see host.Serial.
type Serial struct {
	host.Serial
	// Pending says that no host is known to have it: the run that wrote it was cut, or no host had been changed by then.
	Pending bool `json:"pending,omitempty"`
}

// Serial reads the serial, nil if there is none: nothing was changed from here, or by a program that wrote none.
func (d Dir) Serial() (*Serial, error) {
	content, err := d.Read(serialFile)
	if err != nil || content == nil {
		return nil, err
	}
	s := &Serial{}
	err = json.Unmarshal(content, s)
	if err == nil {
		err = s.Validate()
	}
	if err != nil {
		return nil, fmt.Errorf("%s: %w: restore it from a backup, or remove it and say that this copy is the newest with --state-is-current",
			d.Path(serialFile), err)
	}
	return s, nil
}

// WriteSerial replaces the serial; nil removes it.
func (d Dir) WriteSerial(s *Serial) error {
	if s == nil {
		if err := os.Remove(d.Path(serialFile)); !errors.Is(err, fs.ErrNotExist) {
			return err
		}
		return nil
	}
	content, err := json.MarshalIndent(s, "", "  ")
	if err != nil {
		return err
	}
	return d.Write(append(content, '\n'), serialFile)
}
