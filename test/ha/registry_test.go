// Copyright 2026 The cluster-api-provider-kubexm Authors.
// SPDX-License-Identifier: Apache-2.0

//go:build ha

package ha

import (
	"archive/tar"
	"bytes"
	"encoding/json"
	"errors"
	"io"
	"log"
	"maps"
	"net"
	"net/http"
	"net/http/httptest"
	"net/netip"
	"path"
	"runtime"
	"slices"
	"strings"
	"sync/atomic"

	images "github.com/google/go-containerregistry/pkg/registry"
	v1 "github.com/google/go-containerregistry/pkg/v1"

	"github.com/mensylisir/cluster-api-provider-kubexm/pkg/artifact"
)

// registry is one with an image, which wants a password.
type registry struct {
	address, image, user, password string
	asked                          atomic.Int64
}

// served is how often a manifest was asked for with the password.
func (r *registry) served() int64 { return r.asked.Load() }

// privateRegistry runs a registry on this machine, which hosts reach at the first address of their network, with the pause image.
func (c *cluster) privateRegistry() *registry {
	c.t.Helper()
	host, err := netip.ParseAddr(c.lab.Hosts[0].Address)
	if err != nil {
		c.t.Fatal(err)
	}
	prefix, err := host.Prefix(24)
	if err != nil {
		c.t.Fatal(err)
	}
	listener, err := net.Listen("tcp", net.JoinHostPort(prefix.Masked().Addr().Next().String(), "0"))
	if err != nil {
		c.t.Fatal(err)
	}
	r := &registry{address: listener.Addr().String(), image: "team/pause:kept", user: "puller", password: "not-for-everyone"}
	inner := images.New(images.Logger(log.New(io.Discard, "", 0)))
	c.fill(inner, r.image)
	server := &http.Server{Handler: http.HandlerFunc(func(w http.ResponseWriter, req *http.Request) {
		user, password, _ := req.BasicAuth()
		if user != r.user || password != r.password {
			w.Header().Set("WWW-Authenticate", `Basic realm="images"`)
			http.Error(w, `{"errors": [{"code": "UNAUTHORIZED"}]}`, http.StatusUnauthorized)
			return
		}
		if strings.Contains(req.URL.Path, "/manifests/") {
			r.asked.Add(1)
		}
		inner.ServeHTTP(w, req)
	})}
	go func() { _ = server.Serve(listener) }()
	c.t.Cleanup(func() { _ = server.Close() })
	return r
}

// fill puts the bundle's pause image into a registry.
func (c *cluster) fill(into http.Handler, image string) {
	c.t.Helper()
	bundle, err := artifact.Open(c.t.Context(), c.Bundle, nil)
	if err != nil {
		c.t.Fatal(err)
	}
	archive, err := bundle.ImageArchive(runtime.GOARCH, bundle.Images(runtime.GOARCH)["pause"])
	if err != nil {
		c.t.Fatal(err)
	}
	stream, err := archive.Open()
	if err != nil {
		c.t.Fatal(err)
	}
	defer func() { _ = stream.Close() }()
	name, tag, _ := strings.Cut(image, ":")
	var index v1.IndexManifest
	blobs := map[string][]byte{}
	for files := tar.NewReader(stream); ; {
		file, err := files.Next()
		if errors.Is(err, io.EOF) {
			break
		}
		if err != nil {
			c.t.Fatal(err)
		}
		data, err := io.ReadAll(files)
		if err != nil {
			c.t.Fatal(err)
		}
		switch {
		case file.Name == "index.json":
			if err := json.Unmarshal(data, &index); err != nil {
				c.t.Fatal(err)
			}
		case path.Dir(file.Name) == "blobs/sha256":
			blobs["sha256:"+path.Base(file.Name)] = data
		}
	}
	if len(index.Manifests) != 1 {
		c.t.Fatalf("the archive of one image has %d", len(index.Manifests))
	}
	manifest := index.Manifests[0]
	for digest, data := range blobs {
		if digest != manifest.Digest.String() {
			c.send(into, http.MethodPost, "/v2/"+name+"/blobs/uploads/?digest="+digest, "application/octet-stream", data)
		}
	}
	c.send(into, http.MethodPut, "/v2/"+name+"/manifests/"+tag, string(manifest.MediaType), blobs[manifest.Digest.String()])
}

func (c *cluster) send(into http.Handler, method, url, kind string, data []byte) {
	c.t.Helper()
	req, err := http.NewRequestWithContext(c.t.Context(), method, url, bytes.NewReader(data))
	if err != nil {
		c.t.Fatal(err)
	}
	req.Header.Set("Content-Type", kind)
	answer := httptest.NewRecorder()
	into.ServeHTTP(answer, req)
	if answer.Code != http.StatusCreated {
		c.t.Fatalf("%s %s: %d %s", method, url, answer.Code, answer.Body.String())
	}
}

// bundleImages are the references of all images of the bundle.
func (c *cluster) bundleImages() []string {
	c.t.Helper()
	bundle, err := artifact.Open(c.t.Context(), c.Bundle, nil)
	if err != nil {
		c.t.Fatal(err)
	}
	return slices.Collect(maps.Values(bundle.Images(runtime.GOARCH)))
}
