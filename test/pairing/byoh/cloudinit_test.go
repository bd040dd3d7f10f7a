// Copyright 2026 The cluster-api-provider-kubexm Authors.
// SPDX-License-Identifier: Apache-2.0

package byoh

import (
	"slices"
	"strings"
	"testing"
)

// TestRead has what the agent takes in another way than cloud-init, or does not take: bootstrap data that relies on it fails here first.
func TestRead(t *testing.T) {
	for name, tc := range map[string]struct {
		data    string
		files   []string // contents
		runcmd  []string
		refused string
	}{
		"commands and files": {
			data:  "## template: jinja\n#cloud-config\nwrite_files:\n- {path: /a, content: a}\nruncmd:\n- echo '{{ x }}'\n",
			files: []string{"a"}, runcmd: []string{"echo '{{ x }}'"},
		},
		"encoded":            {data: "write_files: [{path: /a, encoding: b64, content: YWJj}]", files: []string{"abc"}},
		"compressed":         {data: "write_files: [{path: /a, encoding: gzip+base64, content: H4sIAAAAAAAAA0tMSgYAwkEkNQMAAAA=}]", files: []string{"abc"}},
		"the interface":      {data: "write_files: [{path: /a, content: '{{ .DefaultNetworkInterfaceName }}'}]", files: []string{"eth0"}},
		"another key":        {data: "users: [{name: x}]\nruncmd: [a]", runcmd: []string{"a"}},
		"a command as list":  {data: "runcmd: [[echo, a]]", refused: "parse the bootstrap data"},
		"jinja":              {data: "write_files: [{path: /a, content: '{{ ds.meta_data.uuid }}'}]", refused: "parse the file /a as a template"},
		"a template inside":  {data: "write_files: [{path: /a, encoding: b64, content: e3sgLngsIH19}]", refused: "/a as a template"},
		"another variable":   {data: "write_files: [{path: /a, content: '{{ .Hostname }}'}]", refused: "execute the file /a as a template"},
		"encoding":           {data: "write_files: [{path: /a, encoding: b65, content: a}]", refused: `the encoding "b65" is unknown`},
		"no base64":          {data: "write_files: [{path: /a, encoding: base64, content: '-'}]", refused: "decode the file /a"},
		"not compressed":     {data: "write_files: [{path: /a, encoding: gz+b64, content: YWJj}]", refused: "decode the file /a"},
		"no cloud-config":    {data: "#!/bin/sh\necho a: b: c", refused: "parse the bootstrap data"},
		"nothing to be done": {data: "#cloud-config\n"},
	} {
		t.Run(name, func(t *testing.T) {
			config, err := read([]byte(tc.data), "eth0")
			if tc.refused != "" {
				if err == nil || !strings.Contains(err.Error(), tc.refused) {
					t.Errorf("it ended with %v, want %q", err, tc.refused)
				}
				return
			}
			if err != nil {
				t.Fatal(err)
			}
			var contents []string
			for _, f := range config.WriteFiles {
				contents = append(contents, f.Content)
			}
			if !slices.Equal(contents, tc.files) || !slices.Equal(config.RunCmd, tc.runcmd) {
				t.Errorf("it has %q and %q, want %q and %q", contents, config.RunCmd, tc.files, tc.runcmd)
			}
		})
	}
}

func TestDefinitions(t *testing.T) {
	all, err := Definitions()
	if err != nil {
		t.Fatal(err)
	}
	var kinds []string
	for _, d := range all {
		kinds = append(kinds, d.Spec.Names.Kind)
	}
	if want := []string{"ByoHost", "ByoMachine", "ByoMachineTemplate", "ByoCluster", "ByoClusterTemplate"}; !slices.Equal(kinds, want) {
		t.Errorf("they are %q, want %q", kinds, want)
	}
}
