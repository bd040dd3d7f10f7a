// Copyright 2026 The cluster-api-provider-kubexm Authors.
// SPDX-License-Identifier: Apache-2.0

// Package door opens a host of any infrastructure to us over SSH, and closes it again.
//
// Options.Script (open.sh, opened.sh) is the bootstrap data: one shell script, which CloudConfig or Ignition wraps for whoever runs it.
// With home.sh, the host connects to the manager, which need not reach it then: see bootstrap/callhome. It lets a
// user in with our key, and brings a host key that was made for the Machine, the birth key: whoever shows that is the host. sshd offers
// one key of each type, so the birth key is of one that hosts have none of (ECDSA P-384): what others know the host by stays true.
//
// Bootstrap data can be read by many, and some infrastructures keep it. So the first connection has another key made on the host (Rekey,
// ECDSA P-521), and when that is pinned, the birth key goes (Retire).
//
// What the door makes is recorded on the host below /etc/kubexm/door, each thing before it is made, and Close undoes that alone. Every
// script may be cut anywhere and run again. One waits for the other by a lock. door.sh is what they share.
package door
