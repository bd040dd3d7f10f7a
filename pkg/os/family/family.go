// Copyright 2026 The cluster-api-provider-kubexm Authors.
// SPDX-License-Identifier: Apache-2.0

// Package family is what the families of operating systems have in common: the questions that steps and preflight ask of the one that a
// host has. Each family is a folder beside this one, and a line in the tables.
package family

// Family is an operating system of a host, in one of its releases. What differs between families is asked here and stands nowhere else.
type Family interface {
	// Name is for people.
	Name() string
	// Packages are the manager of packages, and how people remove some.
	Packages() Manager
	// Software is what the family calls a program, and what becomes of it on a host.
	Software(p Program) Software
	// Nginx is how the family's nginx is laid out.
	Nginx() Nginx
	// Swap is what brings swap, beside lines of /etc/fstab.
	Swap() Swap
}

// System is an operating system of a family, by what its /etc/os-release says.
type System struct {
	// ID is ID there, and Name is for people.
	ID, Name string
	// Releases are values of VERSION_ID. One without a dot stands for all of its minor releases.
	Releases []string
	// Seen is how the releases were tried.
	Seen Evidence
}

// Evidence is how a system was tried.
type Evidence string

const (
	// Real is by hosts with its own programs.
	Real Evidence = "run"
	// Simulated is by hosts that say that they are it, with programs of Debian.
	Simulated Evidence = "simulated"
	// Rendered is by plans alone.
	Rendered Evidence = "by plans alone"
)

// Kind is a kind of packages.
type Kind string

// Kinds of packages.
const (
	Debs Kind = "debs"
	RPMs Kind = "rpms"
)

// Manager is a manager of packages.
type Manager struct {
	Kind Kind
	// Remove is the command that removes packages, without their names.
	Remove string
}

// Program is one that the house takes from the distribution.
type Program string

// Programs that several components take, or that a family has another name for. One that all call by its own name needs none here.
const (
	Curl       Program = "curl"
	HAProxy    Program = "haproxy"
	IPSet      Program = "ipset"
	IPTables   Program = "iptables"
	Keepalived Program = "keepalived"
	NFTables   Program = "nftables"
	NginxProxy Program = "nginx"
)

// Programs are all of them.
func Programs() []Program {
	return []Program{Curl, HAProxy, IPSet, IPTables, Keepalived, NFTables, NginxProxy}
}

// Software is a program of the distribution.
type Software struct {
	// Packages are what it is installed by.
	Packages []string
	// Leftovers are paths that it leaves behind when these packages go.
	Leftovers []string
}

// Names are the packages of programs, in their order.
func Names(f Family, programs ...Program) []string {
	var names []string
	for _, p := range programs {
		names = append(names, f.Software(p).Packages...)
	}
	return names
}

// Nginx is a layout of nginx.
type Nginx struct {
	// User is the account of its workers, and Modules are the files that load its modules.
	User, Modules string
}

// Swap is what brings swap to a host at each boot.
type Swap struct {
	// Units make it.
	Units []string
	// Emptied are files whose being empty says that there is to be none.
	Emptied []string
}
