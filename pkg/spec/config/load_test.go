// Copyright 2026 The cluster-api-provider-kubexm Authors.
// SPDX-License-Identifier: Apache-2.0

package config_test

import (
	"errors"
	"fmt"
	"io/fs"
	"maps"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/mensylisir/cluster-api-provider-kubexm/pkg/spec"
	"github.com/mensylisir/cluster-api-provider-kubexm/pkg/spec/config"
)

const twoHosts = `apiVersion: kubexm.mensylisir.io/v1alpha1
kind: Cluster
metadata: {name: test}
spec:
  hosts:
  - {name: a, address: 172.16.0.2, ACCESS}
  - {name: b, address: 172.16.0.3, password: hunter2}
  roleGroups: {master: [a], worker: [b]}
  kubernetes: {version: v1.36.3}
`

func TestLoad(t *testing.T) {
	home := t.TempDir()
	t.Setenv("HOME", home)
	if err := os.WriteFile(filepath.Join(home, "key"), []byte("a key"), 0o600); err != nil {
		t.Fatal(err)
	}
	for name, c := range map[string]struct {
		access   string
		hasKey   string // the address of the only login that OpenSSH has a key for
		mode     fs.FileMode
		want     string // in the error; "" if the file is fine
		warnings int
	}{
		"key in the home directory":   {access: "privateKeyPath: ~/key", mode: 0o600},
		"key that is not there":       {access: "privateKeyPath: ~/other", mode: 0o600, want: "config.yaml:6: spec.hosts[0].privateKeyPath: the key cannot be used: stat " + home + "/other"},
		"key that is a directory":     {access: "privateKeyPath: ~/", mode: 0o600, want: "is not a regular file"},
		"OpenSSH has a key":           {access: "port: 2222", hasKey: "root@172.16.0.2:2222", mode: 0o600},
		"OpenSSH has none":            {access: "port: 22", hasKey: "root@172.16.0.2:2222", mode: 0o600, want: "config.yaml:6: spec.hosts[0]: has neither password nor privateKeyPath, and nobody has a key"},
		"password that others read":   {access: "password: hunter3", mode: 0o644, warnings: 1},
		"password that others do not": {access: "password: hunter3", mode: 0o600},
		"not a config":                {access: "port: 0", mode: 0o600, want: "config.yaml:6: spec.hosts[0].port: cannot be 0"},
	} {
		t.Run(name, func(t *testing.T) {
			path := filepath.Join(t.TempDir(), "config.yaml")
			if err := os.WriteFile(path, []byte(strings.Replace(twoHosts, "ACCESS", c.access, 1)), c.mode); err != nil {
				t.Fatal(err)
			}
			cluster, warnings, err := config.Load(path, func(address string, port int32, user string) error {
				if fmt.Sprintf("%s@%s:%d", user, address, port) != c.hasKey {
					return errors.New("nobody has a key")
				}
				return nil
			})
			if c.want == "" && err != nil || c.want != "" && (err == nil || !strings.Contains(err.Error(), c.want)) {
				t.Fatalf("error %v, want %q", err, c.want)
			}
			if len(warnings) != c.warnings {
				t.Errorf("warnings %v, want %d", warnings, c.warnings)
			}
			for _, warning := range warnings {
				if warning.File != path || warning.Line == 0 || !strings.Contains(warning.Text, "chmod 600") {
					t.Errorf("a warning without its place or remedy: %v", warning)
				}
			}
			if c.want == "" && strings.HasPrefix(cluster.Hosts[0].PrivateKeyPath, "~") {
				t.Errorf("the home directory is left to others: %s", cluster.Hosts[0].PrivateKeyPath)
			}
			if err == nil && string(cluster.Hosts[1].Password.Reveal()) != "hunter2" {
				t.Error("the password did not arrive")
			}
		})
	}
}

func TestLoadWithoutFile(t *testing.T) {
	if _, _, err := config.Load(filepath.Join(t.TempDir(), "none.yaml"), nil); !errors.Is(err, fs.ErrNotExist) {
		t.Errorf("error %v, want that of the missing file", err)
	}
	if _, _, err := config.Load(t.TempDir(), nil); err == nil {
		t.Error("a directory is taken for a file")
	}
	path := filepath.Join(t.TempDir(), "large.yaml")
	if err := os.WriteFile(path, make([]byte, 1<<20+1), 0o600); err != nil {
		t.Fatal(err)
	}
	var refused *config.Error
	if _, _, err := config.Load(path, nil); !errors.As(err, &refused) {
		t.Errorf("error %v, want a refusal", err)
	}
}

// TestLoadEtcdFiles: what an external etcd is reached with must be there, and the home directory is this user's.
func TestLoadEtcdFiles(t *testing.T) {
	home := t.TempDir()
	t.Setenv("HOME", home)
	for _, name := range []string{"ca.crt", "etcd.crt", "etcd.key"} {
		if err := os.WriteFile(filepath.Join(home, name), []byte("PEM"), 0o600); err != nil {
			t.Fatal(err)
		}
	}
	load := func(key string) (*config.Cluster, error) {
		path := filepath.Join(t.TempDir(), "config.yaml")
		content := strings.Replace(twoHosts, "ACCESS", "password: hunter3", 1) +
			"  etcd: {type: external, external: {endpoints: [\"https://192.168.6.6:2379\"], caFile: ~/ca.crt, certFile: ~/etcd.crt, keyFile: " + key + "}}\n"
		if err := os.WriteFile(path, []byte(content), 0o600); err != nil {
			t.Fatal(err)
		}
		cluster, _, err := config.Load(path, nil)
		return cluster, err
	}
	cluster, err := load("~/etcd.key")
	if err != nil {
		t.Fatal(err)
	}
	want := config.EtcdFiles{CA: home + "/ca.crt", Cert: home + "/etcd.crt", Key: home + "/etcd.key"}
	if cluster.EtcdFiles != want || cluster.Spec.Etcd.External.SecretRef.Name != cluster.EtcdSecret() {
		t.Errorf("the files are %v, for the Secret %q", cluster.EtcdFiles, cluster.Spec.Etcd.External.SecretRef.Name)
	}
	if _, err := load("~/other.key"); err == nil || !strings.Contains(err.Error(), "spec.etcd.external.keyFile: the file cannot be used") {
		t.Errorf("error %v, want that of the missing key", err)
	}
}

// TestTemplates keeps the files that users start with valid.
func TestTemplates(t *testing.T) {
	for template, roles := range map[string]map[spec.Role]int{
		"quickstart": {spec.RoleControlPlane: 1, spec.RoleWorker: 1},
		"ha":         {spec.RoleControlPlane: 3, spec.RoleWorker: 2, spec.RoleLoadBalancer: 2},
	} {
		data, err := os.ReadFile("../../../templates/" + template + "/config.yaml")
		if err != nil {
			t.Fatal(err)
		}
		cluster, warnings, err := config.Parse(data)
		if err != nil || len(warnings) > 0 {
			t.Errorf("%s: error %v, warnings %v", template, err, warnings)
			continue
		}
		has := map[spec.Role]int{}
		for i := range cluster.Hosts {
			has[cluster.Hosts[i].Spec().Role]++
		}
		if !maps.Equal(has, roles) {
			t.Errorf("%s: the hosts are %v, want %v", template, has, roles)
		}
	}
}

func FuzzParse(f *testing.F) {
	f.Add([]byte(twoHosts))
	files, err := filepath.Glob("testdata/parse/*")
	if err != nil || len(files) == 0 {
		f.Fatalf("no seeds: %v", err)
	}
	for _, file := range files {
		data, err := os.ReadFile(file)
		if err != nil {
			f.Fatal(err)
		}
		for part := range strings.SplitSeq(string(data), "\n\n") {
			input, _, _ := strings.Cut(part, "\n----")
			f.Add([]byte(strings.Replace(twoHosts, "  kubernetes", "  host:\n"+input+"\n  kubernetes", 1)))
			f.Add([]byte(input[strings.Index(input, "\n")+1:]))
		}
	}
	f.Fuzz(func(t *testing.T, data []byte) {
		cluster, _, err := config.Parse(data)
		_, _, again := config.Parse(data)
		if err == nil {
			if cluster.Name == "" || cluster.KubernetesVersion == "" || len(cluster.Hosts) == 0 || again != nil {
				t.Fatalf("accepted: %+v, then %v", cluster, again)
			}
			return
		}
		var refused *config.Error
		if !errors.As(err, &refused) || len(refused.Problems) == 0 {
			t.Fatalf("refused without a problem: %v", err)
		}
		if again == nil || again.Error() != err.Error() {
			t.Fatalf("refused in two ways:\n%v\n\n%v", err, again)
		}
	})
}
