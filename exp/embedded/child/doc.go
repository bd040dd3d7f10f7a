// Copyright 2026 The cluster-api-provider-kubexm Authors.
// SPDX-License-Identifier: Apache-2.0

// Package child runs programs that must not outlive this process: they end when it stops them, when it exits and,
// on Linux, when it is killed.
//
// A child's working directory holds what there is to know of it, by the child's name:
//
//	etcd.log    what it wrote, in at most two files of a bounded size
//	etcd.lock   its process id; locked (flock) for as long as the child lives, by a descriptor that only the child holds
//
// So a child that an earlier process left behind is recognised for certain, whatever became of process ids since then:
// the lock is held exactly if it is still there. Start ends it first.
package child
