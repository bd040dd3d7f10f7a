// Copyright 2026 The cluster-api-provider-kubexm Authors.
// SPDX-License-Identifier: Apache-2.0

package spec

import (
	"bytes"
	"compress/gzip"
	"encoding/base64"
	"errors"
	"fmt"
	"io"
	"slices"
	"strings"
	"text/template"
	"text/template/parse"
	"unicode/utf8"

	"k8s.io/apimachinery/pkg/util/validation/field"
)

// maxContent is how many bytes a file may have that content is decoded or rendered to.
const maxContent = 1 << 20

// Decode is what content in an encoding stands for. Content without one is what it stands for. Errors show nothing of it.
func Decode(encoding FileEncoding, content []byte) ([]byte, error) {
	switch encoding {
	case "":
		return content, nil
	case EncodingBase64:
		return fromBase64(content)
	case EncodingGzip:
		return gunzip(content)
	case EncodingGzipBase64:
		zipped, err := fromBase64(content)
		if err != nil {
			return nil, err
		}
		return gunzip(zipped)
	}
	return nil, fmt.Errorf("there is no encoding %q", encoding)
}

func fromBase64(content []byte) ([]byte, error) {
	decoded, err := base64.StdEncoding.AppendDecode(nil, bytes.TrimSpace(content))
	if err != nil {
		return nil, fmt.Errorf("it is not base64: %w", err)
	}
	return decoded, nil
}

func gunzip(content []byte) ([]byte, error) {
	r, err := gzip.NewReader(bytes.NewReader(content))
	if err != nil {
		return nil, fmt.Errorf("it is not gzip: %w", err)
	}
	decoded, err := io.ReadAll(io.LimitReader(r, maxContent+1))
	switch {
	case err != nil:
		return nil, fmt.Errorf("it is not gzip: %w", err)
	case len(decoded) > maxContent:
		return nil, errTooMuch
	}
	return decoded, nil
}

var errTooMuch = fmt.Errorf("it comes to more than %d bytes: use less", maxContent)

// contentValues are what a template may take of a host. Sample values are those of no host.
func contentValues(t *Target) map[string]any {
	return map[string]any{
		"name": t.Host.Name, "address": t.Host.NodeAddress(), "addresses": t.Host.Addresses(), "role": string(t.Host.Role),
		"cluster": t.ClusterName, "kubernetesVersion": t.KubernetesVersion,
	}
}

// rangedOver is the only value that a template may loop over.
const rangedOver = ".addresses"

// sampleHost is what templates are tried with before there is a host.
var sampleHost = Target{
	ClusterName: "cluster", KubernetesVersion: "v1.0.0",
	Host: Host{Name: "host", Role: RoleWorker, Address: "192.0.2.1", InternalAddresses: []string{"192.0.2.2"}},
}

// Text is the content that a file has on the target's host, as far as it is written down in the specification, and false where it is in a
// Secret, or no text.
func (f *File) Text(t *Target) (text string, known bool, err error) {
	switch {
	case f.ContentFrom != (ContentSource{}):
		return "", false, nil
	case f.ContentFormat == ContentTemplate:
		text, err = render(f.Content, contentValues(t))
		return text, true, err
	}
	decoded, err := Decode(f.Encoding, []byte(f.Content))
	return string(decoded), utf8.Valid(decoded), err
}

// render executes a template whose loops and calls are bounded: it is a user's, and everybody's controller runs it.
func render(text string, values map[string]any) (string, error) {
	t, err := template.New("content").Option("missingkey=error").Parse(text)
	if err != nil {
		return "", err
	}
	if len(t.Templates()) > 1 {
		return "", errors.New("it defines a template: write all of it in one")
	}
	if t.Tree == nil {
		return "", nil
	}
	if err := bounded(t.Root, false); err != nil {
		return "", err
	}
	var out limited
	if err := t.Execute(&out, values); err != nil {
		return "", err
	}
	return out.String(), nil
}

// functions are those that a template may call. None of them makes text: what one makes of a width, or of itself again and again, is of
// any size, and may be written nowhere.
var functions = []string{"and", "or", "not", "eq", "ne", "lt", "le", "gt", "ge", "len", "index"}

// calls refuses other functions in a pipeline, however deep.
func calls(node parse.Node) error {
	var within []parse.Node
	switch n := node.(type) {
	case *parse.IdentifierNode:
		if !slices.Contains(functions, n.Ident) {
			return fmt.Errorf("it calls %s: use %s alone", n.Ident, strings.Join(functions, ", "))
		}
	case *parse.ChainNode:
		within = []parse.Node{n.Node}
	case *parse.CommandNode:
		within = n.Args
	case *parse.PipeNode:
		for _, c := range n.Cmds {
			within = append(within, c)
		}
	}
	for _, n := range within {
		if err := calls(n); err != nil {
			return err
		}
	}
	return nil
}

// bounded refuses what may take long, or much memory: loops over anything but the addresses, loops within loops, templates within
// templates, and functions that make text.
func bounded(list *parse.ListNode, looping bool) error {
	if list == nil {
		return nil
	}
	for _, node := range list.Nodes {
		var branches []*parse.ListNode
		var pipe *parse.PipeNode
		within := looping
		switch n := node.(type) {
		case *parse.RangeNode:
			if looping {
				return errors.New("a loop is within another: write one after the other")
			}
			if over := n.Pipe.String(); over != rangedOver && !strings.HasSuffix(over, ":= "+rangedOver) {
				return fmt.Errorf("a loop is over %q: loop over %s alone", over, rangedOver)
			}
			branches, within = []*parse.ListNode{n.List, n.ElseList}, true // its pipeline is known by now
		case *parse.IfNode:
			branches, pipe = []*parse.ListNode{n.List, n.ElseList}, n.Pipe
		case *parse.WithNode:
			branches, pipe = []*parse.ListNode{n.List, n.ElseList}, n.Pipe
		case *parse.ActionNode:
			pipe = n.Pipe
		case *parse.TemplateNode:
			return errors.New("it calls a template: write all of it in one")
		}
		if pipe != nil {
			if err := calls(pipe); err != nil {
				return err
			}
		}
		for _, b := range branches {
			if err := bounded(b, within); err != nil {
				return err
			}
		}
	}
	return nil
}

// limited is a buffer for what a file may have.
type limited struct{ bytes.Buffer }

func (l *limited) Write(p []byte) (int, error) {
	if l.Len()+len(p) > maxContent {
		return 0, errTooMuch
	}
	return l.Buffer.Write(p)
}

// blockMark begins the lines around what is appended.
const blockMark = "# BEGIN kubexm ,# END kubexm "

// validateContent checks what becomes of the content, as far as that is known before there is a host.
func (f *File) validateContent(path *field.Path) field.ErrorList {
	content := path.Child("content")
	switch {
	case f.ContentFormat == ContentTemplate && (f.ContentFrom != (ContentSource{}) || f.Encoding != ""):
		return field.ErrorList{field.Forbidden(path.Child("contentFormat"), "a template is written in content, without encoding: set content, and remove encoding")}
	case f.IsAppended() && f.ContentFrom != (ContentSource{}):
		return field.ErrorList{field.Forbidden(path.Child("append"), "content of a Secret cannot be appended: set content, or remove append")}
	case f.Content == "":
		return nil
	case f.Encoding == EncodingGzip:
		return field.ErrorList{field.Invalid(path.Child("encoding"), string(f.Encoding), "gzip is no text: use GzipBase64, or contentFrom")}
	}
	text, isText, err := f.Text(&sampleHost)
	switch {
	case err != nil && f.ContentFormat == ContentTemplate:
		return field.ErrorList{field.Invalid(content, field.OmitValueType{}, fmt.Sprintf("the template cannot be rendered: %v", err))}
	case err != nil:
		return field.ErrorList{field.Invalid(path.Child("encoding"), string(f.Encoding), fmt.Sprintf("content is not in it: %v", err))}
	case f.IsAppended() && !isText:
		return field.ErrorList{field.Invalid(content, field.OmitValueType{}, "is no text: only text can be appended")}
	}
	for line := range strings.Lines(text) {
		for mark := range strings.SplitSeq(blockMark, ",") {
			if f.IsAppended() && strings.HasPrefix(line, mark) {
				return field.ErrorList{
					field.Invalid(content, field.OmitValueType{}, "has a line that begins with "+strings.TrimSpace(mark)+": such lines mark what is appended; change it"),
				}
			}
		}
	}
	return nil
}
