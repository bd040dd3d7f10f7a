// Copyright 2026 The cluster-api-provider-kubexm Authors.
// SPDX-License-Identifier: Apache-2.0

package artifact

import (
	"errors"
	"io"
)

// Verify reads the whole file. The error is a *CorruptError if it is not what the manifest says: call it before a program of a bundle is
// executed on this machine.
func (f File) Verify() error {
	r, err := f.Open()
	if err != nil {
		return err
	}
	_, err = io.Copy(io.Discard, r)
	return errors.Join(err, r.Close())
}
