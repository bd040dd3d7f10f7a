// Copyright 2026 The cluster-api-provider-kubexm Authors.
// SPDX-License-Identifier: Apache-2.0

package posix

import (
	"compress/gzip"
	"errors"
	"io"

	"github.com/klauspost/compress/zstd"
)

// newPacker compresses what is written, for the tool on the far side; "" passes it on.
func newPacker(to io.Writer, tool string) (io.WriteCloser, error) {
	switch tool {
	case "":
		return passing{to}, nil
	case "zstd":
		return zstd.NewWriter(to, zstd.WithEncoderLevel(zstd.SpeedFastest),
			zstd.WithEncoderConcurrency(1), zstd.WithWindowSize(512<<10), zstd.WithLowerEncoderMem(true))
	case "gzip":
		return gzip.NewWriterLevel(to, gzip.BestSpeed)
	}
	return nil, errors.New("no compressor " + tool)
}

type passing struct{ io.Writer }

func (passing) Close() error { return nil }

// compressible reports whether the beginning of a part shrinks by a tenth. Archives, images and encrypted files do not.
func compressible(p part) bool {
	source, err := p.open()
	if err != nil {
		return false // sending it will tell
	}
	defer source.Close()
	var packed counter
	pack, err := newPacker(&packed, "zstd")
	if err != nil {
		return false
	}
	const sample = 256 << 10
	n, err := io.CopyN(pack, source, min(sample, p.length))
	if err = errors.Join(err, pack.Close()); err != nil {
		return false
	}
	return int64(packed) < n*9/10
}

// counter counts what is written to it.
type counter int64

func (c *counter) Write(b []byte) (int, error) {
	*c += counter(len(b))
	return len(b), nil
}
