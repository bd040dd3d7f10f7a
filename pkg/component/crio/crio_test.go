// Copyright 2026 The cluster-api-provider-kubexm Authors.
// SPDX-License-Identifier: Apache-2.0

package crio

import (
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"testing"

	"github.com/mensylisir/cluster-api-provider-kubexm/pkg/spec"
	"github.com/mensylisir/cluster-api-provider-kubexm/pkg/step"
)

// TestRegistries: mirrors in their order, before the registry itself, and what is not verified.
func TestRegistries(t *testing.T) {
	got := registries(spec.Registries{
		Mirrors: []spec.Mirror{
			{Registry: "docker.io", Endpoints: []string{"https://registry.prod.example/v2/hub", "http://10.0.0.1:5000"}},
			{Registry: "quay.io", Endpoints: []string{"https://self.example:8443"}},
		},
		Insecure: []string{"self.example:8443", "quay.io", "old.example"},
	})
	want := `# Written by kubexm.
unqualified-search-registries = ["docker.io"]

[[registry]]
prefix = "docker.io"
location = "docker.io"

[[registry.mirror]]
location = "registry.prod.example/hub"

[[registry.mirror]]
location = "10.0.0.1:5000"
insecure = true

[[registry]]
prefix = "quay.io"
location = "quay.io"
insecure = true

[[registry.mirror]]
location = "self.example:8443"
insecure = true

[[registry]]
prefix = "self.example:8443"
location = "self.example:8443"
insecure = true

[[registry]]
prefix = "old.example"
location = "old.example"
insecure = true
`
	if got != want {
		t.Errorf("got\n%s\nwant\n%s", got, want)
	}
}

// TestRender: what follows from the host, and what else is left to CRI-O.
func TestRender(t *testing.T) {
	for _, one := range []struct {
		name     string
		settings Settings
		has, not []string
	}{
		{"a machine", Settings{DataDir: "/data/images", PauseImage: "pause:1", SystemdCgroup: true},
			[]string{
				`root = "/data/images/storage"`, `cgroup_manager = "systemd"`, `runtime_path = "/usr/local/bin/runc"`, `pause_image = "pause:1"`,
			},
			[]string{"conmon_cgroup"}},
		{"a container", Settings{DataDir: "/var/lib/containers", RestrictOOMScore: true},
			[]string{`cgroup_manager = "cgroupfs"`, `conmon_cgroup = "pod"`, `runtime_path = "` + restricted + `"`}, nil},
	} {
		t.Run(one.name, func(t *testing.T) {
			got := render(one.settings)
			for _, line := range one.has {
				if !strings.Contains(got, "\n"+line+"\n") {
					t.Errorf("no line %s in\n%s", line, got)
				}
			}
			for _, word := range one.not {
				if strings.Contains(got, word) {
					t.Errorf("%s is in\n%s", word, got)
				}
			}
		})
	}
}

// TestRestricted: a wish for less than 0 is what the caller has itself, others stay; limits of huge pages are left out where nobody may
// set them, and nowhere else; and the program gets the words that it is called with.
func TestRestricted(t *testing.T) {
	own, err := os.ReadFile("/proc/self/oom_score_adj")
	if err != nil {
		t.Fatal(err)
	}
	dir, hugePages := t.TempDir(), filepath.Join(t.TempDir(), "hugetlb")
	program, file, status := filepath.Join(dir, "runc"), filepath.Join(dir, "config.json"), filepath.Join(dir, "status")
	// All up to AUDIT_READ but SYS_RESOURCE.
	if err := os.WriteFile(status, []byte("CapEff:\t0000000000000000\nCapBnd:\t0000003ffeffffff\n"), 0o600); err != nil {
		t.Fatal(err)
	}
	// Root may write everywhere but to what is mounted read-only.
	script := strings.NewReplacer("exec /usr/local/bin/runc", "exec echo", "/sys/fs/cgroup/hugetlb", hugePages,
		"/proc/self/status", status,
		`[ -w "$pages" ]`, `[ -e "$pages/writable" ]`).Replace(restrictedFile)
	if err := os.WriteFile(program, []byte(script), 0o755); err != nil {
		t.Fatal(err)
	}
	const limited = `{"memory":{"limit":1},"hugepageLimits":[{"pageSize":"2MB","limit":0},{"pageSize":"1GB","limit":0}],"pids":{"limit":5}}`
	readOnly := func() error { return os.Mkdir(hugePages, 0o755) }
	writable := func() error { return os.WriteFile(filepath.Join(hugePages, "writable"), nil, 0o600) }
	for _, one := range []struct {
		before      func() error
		asked, want string
	}{
		{nil, `{"process":{"oomScoreAdj":-998},"x":-998}`, `{"process":{"oomScoreAdj":` + strings.TrimSpace(string(own)) + `},"x":-998}`},
		{nil, `{"process":{"oomScoreAdj":900}}`, `{"process":{"oomScoreAdj":900}}`},
		{
			nil, `{"a":["CAP_SYS_RESOURCE","CAP_KILL"],"b":["CAP_AUDIT_READ","CAP_BPF","CAP_PERFMON"],"c":["CAP_CHECKPOINT_RESTORE"]}`,
			`{"a":["CAP_KILL"],"b":["CAP_AUDIT_READ"],"c":[]}`,
		},
		{nil, limited, limited},
		{readOnly, limited, `{"memory":{"limit":1},"pids":{"limit":5}}`},
		{nil, `{"a":1,"hugepageLimits":[{"limit":0}]}`, `{"a":1}`},
		{nil, `{"hugepageLimits":[{"limit":0}]}`, `{}`},
		{nil, `{"hugepageLimits":[{"limit":0}],"a":1}`, `{"a":1}`},
		{nil, "{\n\t\"a\": 1,\n\t\"hugepageLimits\": [\n\t\t{\n\t\t\t\"limit\": 0\n\t\t}\n\t]\n}\n", "{\n\t\"a\": 1\n}\n"},
		{writable, limited, limited},
	} {
		if one.before != nil {
			if err := one.before(); err != nil {
				t.Fatal(err)
			}
		}
		if err := os.WriteFile(file, []byte(one.asked), 0o600); err != nil {
			t.Fatal(err)
		}
		out, err := exec.Command(program, "--root=/r", "create", "--bundle", dir, "--pid-file", "p", "id").CombinedOutput()
		if want := "--root=/r create --bundle " + dir + " --pid-file p id\n"; err != nil || string(out) != want {
			t.Errorf("runc is called with %q, want %q: %v", out, want, err)
		}
		if got, err := os.ReadFile(file); err != nil || string(got) != one.want {
			t.Errorf("%s became %s, want %s: %v", one.asked, got, one.want, err)
		}
	}
}

// TestServiceWatches: what CRI-O is made of restarts it when it is newer; crictl, which it does not run, does not.
func TestServiceWatches(t *testing.T) {
	s := Service([]step.Artifact{{Path: "cri-o/v1/amd64/crio"}, {Path: "runc/v1/amd64/runc"}})
	asked := s.Observe()
	for _, path := range []string{unit, config, policy, registriesConfig, "/usr/local/bin/crio", "/usr/local/bin/runc"} {
		there := false
		for _, q := range asked.Paths {
			there = there || q.Path == path
		}
		if !there {
			t.Errorf("%s is not checked", path)
		}
	}
}

// TestClaimedOnce: the directory that CRI-O caches in is the default data directory's own, and is claimed apart from another one.
func TestClaimedOnce(t *testing.T) {
	for dataDir, want := range map[string]int{"/var/lib/containers": 4, "/data/containers": 5} {
		seen := map[string]int{}
		for _, q := range Claim(dataDir, step.Residue{}).Observe().Paths {
			seen[q.Path]++
		}
		if len(seen) != want || seen[dataDir] != 1 || seen["/var/lib/containers"] != 1 {
			t.Errorf("with %s directories are %v", dataDir, seen)
		}
	}
}
