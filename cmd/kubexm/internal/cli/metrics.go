// Copyright 2026 The cluster-api-provider-kubexm Authors.
// SPDX-License-Identifier: Apache-2.0

package cli

import (
	"context"
	"errors"
	"fmt"
	"net"
	"net/http"
	"time"

	"github.com/prometheus/client_golang/prometheus"
	"github.com/prometheus/client_golang/prometheus/promhttp"

	"github.com/mensylisir/cluster-api-provider-kubexm/pkg/event/metrics"
)

// count begins to count events for the metrics, if somebody wants to know: they are served at --metrics-addr until counting ends that, and
// then written to --metrics-file.
func (a *app) count() error {
	if a.metricsAddr == "" && a.metricsFile == "" {
		return nil
	}
	registry := prometheus.NewRegistry()
	counted, err := metrics.New(registry)
	if err != nil {
		return err
	}
	stop := func() error { return nil }
	if a.metricsAddr != "" {
		if stop, err = serveMetrics(a.metricsAddr, registry); err != nil {
			return usage("--metrics-addr: %w", err)
		}
	}
	a.counted, a.counting = counted, func() error {
		err := stop()
		if a.metricsFile != "" {
			if failed := prometheus.WriteToTextfile(a.metricsFile, registry); failed != nil {
				err = errors.Join(err, fmt.Errorf("--metrics-file: %w", failed))
			}
		}
		return err
	}
	return nil
}

func serveMetrics(address string, registry *prometheus.Registry) (stop func() error, _ error) {
	listener, err := net.Listen("tcp", address)
	if err != nil {
		return nil, err
	}
	mux := http.NewServeMux()
	mux.Handle("GET /metrics", promhttp.HandlerFor(registry, promhttp.HandlerOpts{}))
	server := &http.Server{Handler: mux, ReadHeaderTimeout: 5 * time.Second}
	served := make(chan error, 1)
	go func() { served <- server.Serve(listener) }()
	return func() error {
		ctx, cancel := context.WithTimeout(context.Background(), time.Second) // for a scrape that is under way
		defer cancel()
		err := server.Shutdown(ctx)
		if ended := <-served; !errors.Is(ended, http.ErrServerClosed) {
			err = errors.Join(err, ended)
		}
		return err
	}, nil
}
