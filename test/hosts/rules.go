// Copyright 2026 The cluster-api-provider-kubexm Authors.
// SPDX-License-Identifier: Apache-2.0

package hosts

// Rule names things that Diff leaves out.
type Rule struct {
	Section string // of a Snapshot
	Pattern string // regular expression (RE2) that the key matches
	Reason  string // why a difference there says nothing about who changed the host
}

// Rules returns everything that Diff leaves out. This is the whole list.
func Rules() []Rule {
	const (
		logs     = "logs are kept"
		packages = "the package manager's own state and caches"
		clock    = "systems change it by themselves as time goes by"
		onDemand = "services that start when asked and stop by themselves"
		visitor  = "anyone who observes the host leaves it: logins, sudo, the observation itself"
		resolver = "Docker's resolver in the host's network, on ports that differ at every start"
		systemd  = "systemd makes and removes them as it sees fit"
	)
	return []Rule{
		{"file", `^/var/log(/|$)`, logs},
		{"file", `^/var/(lib/(apt|dpkg|ucf)|cache|backups)(/|$)`, packages},
		{"file", `^/var/lib/(rpm|dnf)(/|$)`, packages},
		{"file", `^/var/lib/systemd/deb-systemd-(user-)?helper-`, packages},
		{"file", `^/etc/ld\.so\.cache$`, packages},
		{"file", `^/etc/(passwd|shadow|group|gshadow|subuid|subgid)-$|^/run/adduser$`, "what the tools that add accounts keep of the files before"},
		{"file", `^/tmp/apt\.(conf|data|sig)\.\w+$`, packages},
		{"file", `^/var/lib/systemd/(random-seed$|timers(/|$))`, clock},
		{"file", `^/var/lib/chrony/`, clock},
		{"file", `^(/var)?/tmp/systemd-private-`, onDemand},
		{"file", `^/(run/sudo|var/lib/sudo)(/|$)|/\.sudo_as_admin_successful$`, visitor},
		{"file", `^/run/motd\.dynamic(\.new)?$`, visitor},
		{"file", `^/run/systemd/transient/session-[^/]+\.scope$`, visitor},
		{"file", `^/run/user(/|$)`, visitor},
		{"mount", `^/run/user/`, visitor},
		{"process", `^\(sd-pam\)$`, visitor},
		{"unit", `^(session-[^/]+\.scope|user(-runtime-dir)?@\d+\.service|user-\d+\.slice|run-user-\d+\.mount)$`, visitor},
		{"unit", `^(systemd-(timedated|hostnamed|localed|tmpfiles-clean)|NetworkManager-dispatcher)\.service$`, onDemand},
		{"unit", `^run-credentials-.*\.mount$`, onDemand},
		{"unit", `\.device$`, systemd},
		{"unit", `\.target$`, "states of a group of other units, which are compared themselves"},
		{"mount", `^/run/credentials/`, onDemand},
		{"process", `^systemd-(timedat|hostnam|localed|tmpfile)|^nm-dispatcher$`, onDemand},
		{"process", `^(sshd|sftp-server|sudo|bash|sh|ps)$`, visitor},
		{"sysctl", `^kernel/ns_last_pid$`, clock},
		{"iptables", `127\.0\.0\.11[:/]|\bDOCKER_(OUTPUT|POSTROUTING)\b`, resolver},
		{"nft", `127\.0\.0\.11\b|\bDOCKER_(OUTPUT|POSTROUTING)\b`, resolver},
		{"cgroup", `(^|/)(init\.scope|(system|user)\.slice(/.*)?|[^/]+\.(mount|service|socket|swap))$`, systemd},
	}
}
