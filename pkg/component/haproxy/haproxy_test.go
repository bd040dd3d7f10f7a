// Copyright 2026 The cluster-api-provider-kubexm Authors.
// SPDX-License-Identifier: Apache-2.0

package haproxy_test

import (
	"testing"

	"github.com/mensylisir/cluster-api-provider-kubexm/pkg/component/haproxy"
	"github.com/mensylisir/cluster-api-provider-kubexm/pkg/component/internal/proxy/proxytest"
)

func TestFiles(t *testing.T) { proxytest.Files(t, haproxy.Proxy) }
