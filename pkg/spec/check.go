// Copyright 2026 The cluster-api-provider-kubexm Authors.
// SPDX-License-Identifier: Apache-2.0

package spec

import (
	"fmt"
	"net/netip"
	"net/url"
	"path"
	"regexp"
	"slices"
	"strconv"
	"strings"
	"unicode"

	"k8s.io/apimachinery/pkg/util/validation"
	"k8s.io/apimachinery/pkg/util/validation/field"
)

// Checks that more than one part of a cluster or host needs.

func oneOf[T ~string](at *field.Path, value T, supported ...T) field.ErrorList {
	if slices.Contains(supported, value) {
		return nil
	}
	return field.ErrorList{field.NotSupported(at, value, supported)}
}

func inRange(at *field.Path, value, least, most int64) field.ErrorList {
	if value >= least && value <= most {
		return nil
	}
	return field.ErrorList{field.Invalid(at, value, fmt.Sprintf("use a number from %d to %d", least, most))}
}

// unique refuses the second and later items with one key. Empty keys are for other checks to refuse.
func unique[T any](at *field.Path, items []T, key func(T) string) field.ErrorList {
	var errs field.ErrorList
	first := map[string]int{}
	for i, item := range items {
		name := key(item)
		if j, found := first[name]; found && name != "" {
			errs = append(errs, duplicate(at.Index(i), name, fmt.Sprintf("is in %s already: remove one of them", at.Index(j))))
			continue
		}
		first[name] = i
	}
	return errs
}

// duplicate is field.Duplicate with a remedy.
func duplicate(at *field.Path, value any, detail string) *field.Error {
	err := field.Duplicate(at, value)
	err.Detail = detail
	return err
}

func itself[T ~string](s T) string { return string(s) }

func isControl(r rune) bool { return unicode.IsControl(r) }

func isDomain(name string) bool { return len(validation.IsDNS1123Subdomain(name)) == 0 }

// isSubdomain reports whether name is domain or below it.
func isSubdomain(name, domain string) bool {
	return name == domain || strings.HasSuffix(name, "."+domain)
}

// isSpecial reports whether an address is one that no host can have among others.
func isSpecial(ip netip.Addr) bool {
	return ip.IsLoopback() || ip.IsUnspecified() || ip.IsMulticast() || ip.IsLinkLocalUnicast() || ip.Zone() != ""
}

func validateIPv4(at *field.Path, address string) field.ErrorList {
	ip, err := netip.ParseAddr(address)
	switch {
	case err != nil:
		return field.ErrorList{field.Invalid(at, address, "use an IPv4 address, such as 172.16.0.2")}
	case !ip.Is4():
		return field.ErrorList{field.Invalid(at, address, "IPv6 addresses are not supported yet by this version of kubexm: use an IPv4 address")}
	case isSpecial(ip):
		return field.ErrorList{field.Invalid(at, address, "is loopback, link-local, multicast or unspecified: use the address at which others reach the host")}
	}
	return nil
}

// validateAddress checks an address of either family.
func validateAddress(at *field.Path, address string) field.ErrorList {
	ip, err := netip.ParseAddr(address)
	switch {
	case err != nil || ip.Is4In6():
		return field.ErrorList{field.Invalid(at, address, "use an IP address, such as 172.16.0.2 or fd85:ee78:d8a6:8606::2")}
	case isSpecial(ip):
		return field.ErrorList{field.Invalid(at, address, "is loopback, link-local, multicast or unspecified: use the address at which others reach the host")}
	case ip.String() != address:
		return field.ErrorList{field.Invalid(at, address, "is not the address's shortest form: write "+ip.String())}
	}
	return nil
}

func overlap(a, b string) bool {
	left, leftErr := netip.ParsePrefix(a)
	right, rightErr := netip.ParsePrefix(b)
	return leftErr == nil && rightErr == nil && left.Overlaps(right)
}

// isHostPort reports whether s is a DNS name or IPv4 address, with or without a port.
func isHostPort(s string) bool {
	host, port, found := strings.Cut(s, ":")
	return isDomain(host) && (!found || isPort(port))
}

func isPort(s string) bool {
	port, err := strconv.ParseUint(s, 10, 16)
	return err == nil && port > 0 && s[0] != '0'
}

// validateURL never prints the URL when it may hold a password.
func validateURL(at *field.Path, text string) field.ErrorList {
	parsed, err := url.Parse(text)
	switch {
	case strings.Contains(text, "@"):
		return field.ErrorList{field.Forbidden(at, "a URL must not hold a user or password: remove them")}
	case err != nil || parsed.Scheme != "https" && parsed.Scheme != "http" || !isHostPort(parsed.Host):
		return field.ErrorList{field.Invalid(at, text, "use a URL with https:// or http:// and a host, such as https://registry.prod.example")}
	}
	return nil
}

// dataDir is narrow because the path is written into configuration files of several syntaxes.
var dataDir = regexp.MustCompile(`^(/[A-Za-z0-9._@+-]+)+$`)

// notOurs are directories that hold other things too: a reset would take these with it.
var notOurs = []string{
	"/etc", "/usr", "/bin", "/sbin", "/lib", "/lib64", "/boot", "/dev", "/proc", "/sys", "/run", "/tmp",
	"/opt/cni", "/var/lib/cni", "/var/lib/kubelet", "/var/lib/kubexm",
}

func validateDataDir(at *field.Path, dir string) field.ErrorList {
	if errs := validateAbsolute(at, dir); len(errs) > 0 {
		return errs
	}
	if !dataDir.MatchString(dir) {
		return field.ErrorList{field.Invalid(at, dir, "use letters, digits and ._@+- between the slashes")}
	}
	if strings.Count(dir, "/") < 2 || dir == "/var/lib" || dir == "/var/log" {
		return field.ErrorList{field.Invalid(at, dir, "other things may lie here too: use a directory of its own below it")}
	}
	for _, other := range notOurs {
		if isWithin(dir, other) {
			return field.ErrorList{field.Invalid(at, dir, "lies in "+other+", which is for other things: use a directory of its own, below /var/lib or on another disk")}
		}
	}
	return nil
}

func validateAbsolute(at *field.Path, name string) field.ErrorList {
	if !path.IsAbs(name) || path.Clean(name) != name || name == "/" || strings.ContainsFunc(name, isControl) {
		return field.ErrorList{field.Invalid(at, name, "use an absolute path without '..', '//', a slash at the end and control characters")}
	}
	return nil
}

// isWithin reports whether the clean path name is dir or below it.
func isWithin(name, dir string) bool {
	return name == dir || strings.HasPrefix(name, dir+"/")
}

func validateHostEntries(at *field.Path, entries []HostEntry) field.ErrorList {
	var errs field.ErrorList
	for i, entry := range entries {
		if ip, err := netip.ParseAddr(entry.Address); err != nil || ip.Zone() != "" {
			errs = append(errs, field.Invalid(at.Index(i).Child("address"), entry.Address, "use an IP address, such as 192.168.0.100"))
		}
		if len(entry.Hostnames) == 0 {
			errs = append(errs, field.Required(at.Index(i).Child("hostnames"), "give the address at least one name, such as api.example.com"))
		}
		for j, name := range entry.Hostnames {
			if !isDomain(name) || name == "localhost" {
				errs = append(errs, field.Invalid(at.Index(i).Child("hostnames").Index(j), name,
					"use a DNS name in lower case, such as api.example.com, and not localhost"))
			}
		}
	}
	return append(errs, unique(at, entries, func(e HostEntry) string { return e.Address })...)
}
