// Copyright 2026 The cluster-api-provider-kubexm Authors.
// SPDX-License-Identifier: Apache-2.0

package embedded

import (
	"context"
	"errors"
	"fmt"
	"io"
	"net/http"
	"time"

	"github.com/mensylisir/cluster-api-provider-kubexm/exp/embedded/child"
)

const (
	readyPoll    = 25 * time.Millisecond
	readyTimeout = 60 * time.Second
	// answerLimit is how much of an answer is read, in bytes.
	answerLimit = 4 << 10
)

// waitReady asks url until it answers 200. It fails when the process ends, and with the process's last words when
// nothing comes of it in time.
func waitReady(ctx context.Context, p *child.Process, client *http.Client, url string) error {
	ctx, cancel := context.WithTimeout(ctx, readyTimeout)
	defer cancel()
	ticker := time.NewTicker(readyPoll)
	defer ticker.Stop()
	for {
		err := ask(ctx, client, url)
		if err == nil {
			return nil
		}
		select {
		case <-p.Done():
			return p.Err()
		case <-ctx.Done():
			return fmt.Errorf("%s: %w before it was ready: %w%s", p.Name(), context.Cause(ctx), err, child.Tail(p.LogPath()))
		case <-ticker.C:
		}
	}
}

func ask(ctx context.Context, client *http.Client, url string) error {
	request, err := http.NewRequestWithContext(ctx, http.MethodGet, url, nil)
	if err != nil {
		return err
	}
	response, err := client.Do(request)
	if err != nil {
		return err
	}
	defer response.Body.Close()
	body, err := io.ReadAll(io.LimitReader(response.Body, answerLimit))
	if response.StatusCode == http.StatusOK {
		return nil
	}
	return errors.Join(fmt.Errorf("%s: %s", response.Status, body), err)
}
