// Copyright 2026 The cluster-api-provider-kubexm Authors.
// SPDX-License-Identifier: Apache-2.0

package pki

import cflog "github.com/cloudflare/cfssl/log"

// cfssl tells the standard logger of every key and certificate that it makes. What matters comes back as an error.
func init() { cflog.Level = cflog.LevelFatal }
