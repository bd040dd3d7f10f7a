// Copyright 2026 The cluster-api-provider-kubexm Authors.
// SPDX-License-Identifier: Apache-2.0

package cis

import (
	"cmp"
	"fmt"
	"slices"
	"strconv"
	"strings"

	"sigs.k8s.io/yaml"
)

// The components whose arguments are observed.
var components = []string{"kube-apiserver", "kube-controller-manager", "kube-scheduler", "etcd", "kubelet", "kube-proxy"}

// lookAtProviders prints what the API server encrypts with, the first for what is written, and nothing of the keys.
const lookAtProviders = `sed -nE 's/^ *- (aescbc|aesgcm|identity|kms|secretbox):.*/provider\t\1/p' ` + encryptionConfig + ` 2>/dev/null
`

// look prints of the host: files with mode and owner, the arguments of components, digests of authorities, what the API server encrypts
// with, and the configuration of the kubelet, if it has one.
const look = `for root in /etc/kubernetes /etc/systemd/system /var/lib/etcd /var/lib/kubelet/config.yaml; do
	find "$root" -path "$root/*/member" -prune -o -printf 'file\t%p\t%m\t%u:%g\n' 2>/dev/null
done
for program in "$@"; do
	for pid in $(pidof "$program"); do tr '\0' '\n' <"/proc/$pid/cmdline" | sed "s/^/arg\t$program\t/"; done
done
sha256sum /etc/kubexm/etcd/ssl/ca.pem /etc/kubernetes/pki/ca.crt 2>/dev/null | sed 's/^\([0-9a-f]*\) */sum\t\1\t/'
` + lookAtProviders + `sed 's/^/kubelet\t/' /var/lib/kubelet/config.yaml 2>/dev/null || true
`

type file struct {
	mode  int64
	owner string
}

// host is what was seen of one.
type host struct {
	files map[string]file
	args  map[string][]string
	// sums are digests of the authorities' certificates.
	sums map[string]string
	// providers are those that the API server encrypts with, in order.
	providers []string
	// kubelet is its configuration, kubelet.config.k8s.io/v1beta1.
	kubelet map[string]any
}

func parse(seen string) (*host, error) {
	h := &host{files: map[string]file{}, args: map[string][]string{}, sums: map[string]string{}}
	var config strings.Builder
	for line := range strings.SplitSeq(seen, "\n") {
		words := strings.Split(line, "\t")
		switch {
		case words[0] == "file" && len(words) == 4:
			mode, err := strconv.ParseInt(words[2], 8, 32)
			if err != nil {
				return nil, fmt.Errorf("mode of %s: %w", words[1], err)
			}
			h.files[words[1]] = file{mode, words[3]}
		case words[0] == "arg" && len(words) >= 3:
			h.args[words[1]] = append(h.args[words[1]], strings.Join(words[2:], "\t"))
		case words[0] == "sum" && len(words) == 3:
			h.sums[words[2]] = words[1]
		case words[0] == "provider" && len(words) == 2:
			h.providers = append(h.providers, words[1])
		case words[0] == "kubelet":
			config.WriteString(strings.TrimPrefix(line, "kubelet\t") + "\n")
		}
	}
	return h, yaml.Unmarshal([]byte(config.String()), &h.kubelet)
}

// flag is the value of a component's flag, and whether it has that flag.
func (h *host) flag(component, name string) (value string, set bool) {
	for _, a := range h.args[component] {
		if n, v, _ := strings.Cut(a, "="); n == "--"+name {
			value, set = v, true
		}
	}
	return value, set
}

// setting is a value of the kubelet's configuration; a flag of the kubelet counts more. "" means that neither says it.
func (h *host) setting(flag string, path ...string) string {
	if v, set := h.flag("kubelet", flag); set {
		return cmp.Or(v, "true")
	}
	var at any = h.kubelet
	for _, key := range path {
		m, _ := at.(map[string]any)
		at = m[key]
	}
	if at == nil {
		return ""
	}
	return fmt.Sprint(at)
}

// below are the files in a directory.
func (h *host) below(dir string) []string {
	var all []string
	for name := range h.files {
		if strings.HasPrefix(name, dir+"/") {
			all = append(all, name)
		}
	}
	slices.Sort(all)
	return all
}
