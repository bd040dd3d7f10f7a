// Copyright 2026 The cluster-api-provider-kubexm Authors.
// SPDX-License-Identifier: Apache-2.0

// Package hosts gives tests, benches and the quickstart real Linux hosts:
// Debian 12 with systemd and sshd in containers, on a Docker network of their own,
// reached by SSH at an address each.
//
// Start makes a Pool of them, Open finds one that runs, Pool.Stop removes every
// trace. A Host can be paused, killed, restarted and cut off the network, and
// keeps its address, host keys and files through all of that. What the hosts lack
// to be like machines (ordinary /etc/hosts, /etc/hostname and /etc/resolv.conf, a
// /var that overlayfs can sit on, shared mounts, writable cgroups) the image's
// first process and the flags of Start arrange; /etc/resolv.conf names Docker's
// resolver at a loopback address, as hosts with a local resolver do.
//
// Accounts on every host, all opened by the pool's key:
//
//	ops     sudo without a password
//	sudopw  sudo with the password in Options.SudoPassword
//	nosudo  no sudo
//	root
//
// The image is built once by mmdebstrap, kept in Docker under a tag that is a
// digest of its recipe (the directory image), and as an archive in the cache
// directory ($KUBEXM_CACHE, else $XDG_CACHE_HOME/kubexm, else ~/.cache/kubexm).
// Options.System chooses another: SimulatedRPM is made by the directory image-rpm on
// top of image, of Debian's programs, and stands in for the Red Hat family.
//
// Host.Snapshot and Diff compare a host before and after: files, units, sysctls,
// mounts, firewall, network, accounts, processes and cgroups. Rules lists what the
// comparison leaves out, with the reason for each.
//
// Delay of the network is not among the faults: it needs the kernel's netem, which
// small kernels lack. To fill a disk, mount a small tmpfs with Host.Exec.
package hosts
