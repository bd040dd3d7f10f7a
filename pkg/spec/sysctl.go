// Copyright 2026 The cluster-api-provider-kubexm Authors.
// SPDX-License-Identifier: Apache-2.0

package spec

import (
	"regexp"
	"strings"

	"k8s.io/apimachinery/pkg/util/validation/field"
)

// sysctlKey is the parameter's path below /proc/sys, the same for both ways of writing its name: as sysctl(8) has it,
// the first separator in a name is the separator, and the other of the two characters stands for itself.
func sysctlKey(name string) string {
	if i := strings.IndexAny(name, "./"); i < 0 || name[i] == '/' {
		return name
	}
	return strings.NewReplacer(".", "/", "/", ".").Replace(name)
}

var sysctlName = regexp.MustCompile(`^[A-Za-z0-9]([A-Za-z0-9_-]*[A-Za-z0-9])?([./][A-Za-z0-9]([A-Za-z0-9_-]*[A-Za-z0-9])?)+$`)

// neededSysctls are those that no Node works without, by their keys.
var neededSysctls = map[string]string{
	"net/ipv4/ip_forward":                "1",
	"net/bridge/bridge-nf-call-iptables": "1",
}

func validateSysctls(path *field.Path, sysctls []Sysctl) field.ErrorList {
	var errs field.ErrorList
	for i, sysctl := range sysctls {
		at := path.Index(i)
		needed := neededSysctls[sysctlKey(sysctl.Name)]
		switch {
		case !sysctlName.MatchString(sysctl.Name):
			errs = append(errs, field.Invalid(at.Child("name"), sysctl.Name, "use a kernel parameter's name, such as net.core.somaxconn"))
		case strings.TrimSpace(sysctl.Value) == "":
			errs = append(errs, field.Required(at.Child("value"), "give the parameter a value"))
		// A tab separates the numbers of parameters such as net.ipv4.tcp_rmem.
		case strings.ContainsFunc(strings.ReplaceAll(sysctl.Value, "\t", " "), isControl):
			errs = append(errs, field.Invalid(at.Child("value"), sysctl.Value, "a parameter's value is one line without control characters"))
		case needed != "" && sysctl.Value != needed:
			errs = append(errs, field.Invalid(at.Child("value"), sysctl.Value, "pods cannot reach each other unless it is "+needed+": remove it"))
		}
	}
	return append(errs, unique(path, sysctls, func(s Sysctl) string { return sysctlKey(s.Name) })...)
}
