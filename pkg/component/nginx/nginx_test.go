// Copyright 2026 The cluster-api-provider-kubexm Authors.
// SPDX-License-Identifier: Apache-2.0

package nginx_test

import (
	"testing"

	"github.com/mensylisir/cluster-api-provider-kubexm/pkg/component/internal/proxy/proxytest"
	"github.com/mensylisir/cluster-api-provider-kubexm/pkg/component/nginx"
)

func TestFiles(t *testing.T) { proxytest.Files(t, nginx.Proxy) }
