// Copyright 2026 The cluster-api-provider-kubexm Authors.
// SPDX-License-Identifier: Apache-2.0

package byoh

import (
	"bytes"
	"compress/gzip"
	"encoding/base64"
	"fmt"
	"io"
	"strings"
	"text/template"

	"sigs.k8s.io/yaml"
)

// file is one of write_files.
type file struct {
	Path        string `json:"path"`
	Encoding    string `json:"encoding"`
	Owner       string `json:"owner"`
	Permissions string `json:"permissions"`
	Content     string `json:"content"`
	Append      bool   `json:"append"`
}

// cloudConfig is all that the agent knows of cloud-init: other keys are ignored without a word, and a command is a string.
type cloudConfig struct {
	WriteFiles []file   `json:"write_files"`
	RunCmd     []string `json:"runcmd"`
}

// read is bootstrap data as the agent reads it: the header that asks for jinja is a comment to it. What is in files goes through Go's
// templates once it is decoded, with the name of the interface that has the default route.
func read(data []byte, defaultInterface string) (*cloudConfig, error) {
	config := &cloudConfig{}
	if err := yaml.Unmarshal(data, config); err != nil {
		return nil, fmt.Errorf("parse the bootstrap data: %w", err)
	}
	for i := range config.WriteFiles {
		f := &config.WriteFiles[i]
		content, err := decoded(f)
		if err != nil {
			return nil, fmt.Errorf("decode the file %s: %w", f.Path, err)
		}
		parsed, err := template.New("").Parse(content)
		if err != nil {
			return nil, fmt.Errorf("parse the file %s as a template: %w", f.Path, err)
		}
		var b strings.Builder
		if err := parsed.Execute(&b, struct{ DefaultNetworkInterfaceName string }{defaultInterface}); err != nil {
			return nil, fmt.Errorf("execute the file %s as a template: %w", f.Path, err)
		}
		f.Content, f.Encoding = b.String(), ""
	}
	return config, nil
}

func decoded(f *file) (string, error) {
	switch f.Encoding {
	case "", "text/plain":
		return f.Content, nil
	case "b64", "base64":
		content, err := base64.StdEncoding.DecodeString(f.Content)
		return string(content), err
	case "gz+b64", "gzip+base64", "gz+base64", "gzip+b64":
		packed, err := base64.StdEncoding.DecodeString(f.Content)
		if err != nil {
			return "", err
		}
		unpacked, err := gzip.NewReader(bytes.NewReader(packed))
		if err != nil {
			return "", err
		}
		content, err := io.ReadAll(unpacked)
		return string(content), err
	}
	return "", fmt.Errorf("the encoding %q is unknown", f.Encoding)
}

// write is the command that writes a file. One that is there is not truncated: of a longer one, the end stays.
func (f *file) write() []string {
	const script = `mkdir -p "$(dirname "$1")"
if [ -n "$2" ]; then cat >>"$1"; else dd of="$1" conv=notrunc status=none; fi
[ -z "$3" ] || chmod "$3" "$1"
[ -z "$4" ] || chown "$4" "$1"`
	more := ""
	if f.Append {
		more = "yes"
	}
	return []string{"bash", "-ec", script, "bash", f.Path, more, f.Permissions, f.Owner}
}
