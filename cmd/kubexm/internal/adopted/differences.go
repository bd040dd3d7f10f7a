// Copyright 2026 The cluster-api-provider-kubexm Authors.
// SPDX-License-Identifier: Apache-2.0

package adopted

import (
	"crypto/x509"
	"encoding/pem"
	"errors"
	"fmt"
	"maps"
	"slices"
	"strings"

	corev1 "k8s.io/api/core/v1"
	"sigs.k8s.io/yaml"

	"github.com/mensylisir/cluster-api-provider-kubexm/pkg/plan/adoption"
)

// Differences says what a converge takes away from a component ("- …") and adds to it ("+ …"), of what is there and what kubeadm makes of
// the configuration that is declared: a static pod's manifest, or the kubelet's configuration with its flags.
func Differences(component string, have, want []byte) ([]string, error) {
	lines := manifestLines
	if component == adoption.Kubelet {
		lines = settingLines
	}
	before, err := lines(have)
	if err != nil {
		return nil, fmt.Errorf("what %s has is not understood: %w", component, err)
	}
	after, err := lines(want)
	if err != nil {
		return nil, fmt.Errorf("what kubeadm makes of %s is not understood: %w", component, err)
	}
	return Changed(before, after), nil
}

// Changed are the lines that one has ("- …") and the other has not ("+ …").
func Changed(before, after []string) []string {
	var all []string
	for _, l := range before {
		if !slices.Contains(after, l) {
			all = append(all, "- "+l)
		}
	}
	for _, l := range after {
		if !slices.Contains(before, l) {
			all = append(all, "+ "+l)
		}
	}
	return all
}

// manifestLines are what makes a static pod what it is.
func manifestLines(manifest []byte) ([]string, error) {
	pod := corev1.Pod{}
	if err := yaml.Unmarshal(manifest, &pod); err != nil {
		return nil, errors.New("it is no Pod")
	}
	if len(pod.Spec.Containers) != 1 {
		return nil, fmt.Errorf("it has %d containers, and kubeadm's have one", len(pod.Spec.Containers))
	}
	c := pod.Spec.Containers[0]
	lines := append(slices.Clone(c.Command), c.Args...)
	lines = append(lines, "image "+c.Image)
	for _, e := range c.Env {
		lines = append(lines, "environment "+e.Name) // not its value, which may be a password
	}
	for _, v := range pod.Spec.Volumes {
		if v.HostPath == nil {
			lines = append(lines, "volume "+v.Name)
			continue
		}
		lines = append(lines, "volume of "+v.HostPath.Path)
	}
	return lines, nil
}

// manifestFlag is what a static pod's manifest gives its program by a flag, "" if it does not.
func manifestFlag(manifest []byte, name string) string {
	lines, _ := manifestLines(manifest) // what is not understood is refused with its differences
	for _, l := range lines {
		if value, found := strings.CutPrefix(l, "--"+name+"="); found {
			return value
		}
	}
	return ""
}

// settingLines are the settings of a kubelet.
func settingLines(config []byte) ([]string, error) {
	all := map[string]any{}
	if err := yaml.Unmarshal(config, &all); err != nil {
		return nil, errors.New("it is no configuration of a kubelet")
	}
	flags, _ := all["kubeadmArgs"].(string)
	delete(all, "kubeadmArgs")
	return append(flatten("", all), strings.Fields(flags)...), nil
}

func flatten(at string, value any) []string {
	fields, is := value.(map[string]any)
	if !is {
		return []string{fmt.Sprintf("%s: %v", at, value)}
	}
	var lines []string
	for _, name := range slices.Sorted(maps.Keys(fields)) {
		lines = append(lines, flatten(strings.TrimPrefix(at+"."+name, "."), fields[name])...)
	}
	return lines
}

// LostNames are those of an API server's certificate that the one which a converge makes does not have: declared are the names that are
// made for it, a line each, and own those that kubeadm gives it.
func LostNames(certificate []byte, declared string, own []string) ([]string, error) {
	block, _ := pem.Decode(certificate)
	if block == nil {
		return nil, errors.New("/etc/kubernetes/pki/apiserver.crt is no certificate")
	}
	c, err := x509.ParseCertificate(block.Bytes)
	if err != nil {
		return nil, fmt.Errorf("/etc/kubernetes/pki/apiserver.crt: %w", err)
	}
	names := slices.Clone(c.DNSNames)
	for _, ip := range c.IPAddresses {
		names = append(names, ip.String())
	}
	kept := slices.Concat(own, strings.Fields(declared))
	return slices.DeleteFunc(names, func(name string) bool { return slices.Contains(kept, name) }), nil
}
