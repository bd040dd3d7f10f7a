// Copyright 2026 The cluster-api-provider-kubexm Authors.
// SPDX-License-Identifier: Apache-2.0

package etcd_test

import (
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"

	"github.com/mensylisir/cluster-api-provider-kubexm/pkg/component"
	"github.com/mensylisir/cluster-api-provider-kubexm/pkg/component/etcd"
	"github.com/mensylisir/cluster-api-provider-kubexm/pkg/host"
	"github.com/mensylisir/cluster-api-provider-kubexm/pkg/pki"
	"github.com/mensylisir/cluster-api-provider-kubexm/pkg/spec"
)

// kubekeys is what a host of KubeKey says that was asked.
const kubekeys = `state active
program /usr/local/bin/etcd
version 3.6.4
environment /etc/etcd.env
variable ETCD_DATA_DIR=/var/lib/etcd
variable ETCD_ADVERTISE_CLIENT_URLS=https://10.0.0.1:2379
variable ETCD_INITIAL_ADVERTISE_PEER_URLS=https://10.0.0.1:2380
variable ETCD_INITIAL_CLUSTER_STATE=existing
variable ETCD_INITIAL_CLUSTER=etcd-cp1=https://10.0.0.1:2380
variable ETCD_NAME=etcd-cp1
variable ETCD_ELECTION_TIMEOUT=5000
variable ETCD_TRUSTED_CA_FILE=/etc/ssl/etcd/ssl/ca.pem
variable ETCD_CERT_FILE=/etc/ssl/etcd/ssl/member-cp1.pem
variable ETCD_KEY_FILE=/etc/ssl/etcd/ssl/member-cp1-key.pem
variable ETCD_CLIENT_CERT_AUTH=true
variable ETCD_PEER_TRUSTED_CA_FILE=/etc/ssl/etcd/ssl/ca.pem
variable ETCD_PEER_CERT_FILE=/etc/ssl/etcd/ssl/member-cp1.pem
variable ETCD_PEER_KEY_FILE=/etc/ssl/etcd/ssl/member-cp1-key.pem
variable ETCD_PEER_CLIENT_CERT_AUTH=true
client /etc/ssl/etcd/ssl/ca.pem
client /etc/ssl/etcd/ssl/node-cp1.pem
client /etc/ssl/etcd/ssl/node-cp1-key.pem
asked 1
members {"members":[]}
alarms {}
`

var ofUnits = etcd.Units.(component.EtcdUnits)

func theirsIn(t *testing.T, said string) etcd.Theirs {
	t.Helper()
	theirs, err := etcd.TheirsIn(host.Result{Stdout: []byte(said)})
	if err != nil {
		t.Fatal(err)
	}
	return theirs
}

// TestTheirs: settings are understood wherever they are set, and so is what of them is etcd's alone.
func TestTheirs(t *testing.T) {
	for name, tc := range map[string]struct {
		said           string
		flags          []string
		own, elsewhere []string
	}{
		"of KubeKey": {
			said: kubekeys,
			flags: []string{
				"--advertise-client-urls=https://10.0.0.1:2379", "--cert-file=/etc/ssl/etcd/ssl/member-cp1.pem", "--client-cert-auth=true",
				"--data-dir=/var/lib/etcd", "--election-timeout=5000", "--initial-advertise-peer-urls=https://10.0.0.1:2380",
				"--key-file=/etc/ssl/etcd/ssl/member-cp1-key.pem", "--name=etcd-cp1", "--peer-cert-file=/etc/ssl/etcd/ssl/member-cp1.pem",
				"--peer-client-cert-auth=true", "--peer-key-file=/etc/ssl/etcd/ssl/member-cp1-key.pem",
				"--peer-trusted-ca-file=/etc/ssl/etcd/ssl/ca.pem", "--trusted-ca-file=/etc/ssl/etcd/ssl/ca.pem",
			},
			own: []string{"/etc/etcd.env", "/etc/ssl/etcd"},
		},
		"of a configuration file, beside which nothing counts": {
			said: `state active
variable ETCD_NAME=other
argument --config-file=/etc/etcd/etcd.conf.yaml
argument --data-dir=/other
config /etc/etcd/etcd.conf.yaml
line name: 'cp1'
line data-dir: '/var/lib/etcd'
line snapshot-count: 10000
line log-outputs: [stderr, stdout]
line client-transport-security: {client-cert-auth: true, trusted-ca-file: /etc/etcd/pki/ca.pem}
line peer-transport-security: {client-cert-auth: true, trusted-ca-file: /srv/ca.pem}
client /etc/kubernetes/pki/etcd/ca.crt
client /etc/kubernetes/pki/etcd/client.crt
client /etc/kubernetes/pki/etcd/client.key
`,
			flags: []string{
				"--client-cert-auth=true", "--data-dir=/var/lib/etcd", "--log-outputs=stderr,stdout", "--name=cp1", "--peer-client-cert-auth=true",
				"--peer-trusted-ca-file=/srv/ca.pem", "--snapshot-count=10000", "--trusted-ca-file=/etc/etcd/pki/ca.pem",
			},
			own: []string{"/etc/etcd"}, elsewhere: []string{"/srv/ca.pem"},
		},
		"of a command line, which counts before the environment": {
			said: "state active\nvariable ETCD_NAME=other\nargument -name\nargument cp1\nargument --client-cert-auth\nargument --data-dir=/d\n",
			flags: []string{
				"--client-cert-auth=true", "--data-dir=/d", "--name=cp1",
			},
		},
		"that does not run": {said: "pod /etc/kubernetes/manifests/etcd.yaml\nstate inactive\n"},
	} {
		t.Run(name, func(t *testing.T) {
			theirs := theirsIn(t, tc.said)
			if diff := cmp.Diff(tc.flags, theirs.Flags()); diff != "" {
				t.Errorf("flags (-want +got):\n%s", diff)
			}
			own, elsewhere := theirs.Own()
			if diff := cmp.Diff([][]string{tc.own, tc.elsewhere}, [][]string{own, elsewhere}); diff != "" {
				t.Errorf("its own, and elsewhere (-want +got):\n%s", diff)
			}
		})
	}
	for _, said := range []host.Result{
		{ExitCode: 1, Stderr: []byte("no systemctl")}, {Stdout: []byte("state active\nargument --config-file=/x\nconfig /x\nline {\n")},
	} {
		if _, err := etcd.TheirsIn(said); err == nil {
			t.Errorf("%q is understood", said.Stdout)
		}
	}
}

// TestTheirsAreAsked runs what hosts are asked, with an etcd that is a few lines.
func TestTheirsAreAsked(t *testing.T) {
	dir := t.TempDir()
	write := func(name, text string, mode os.FileMode) {
		t.Helper()
		file := filepath.Join(dir, name)
		if err := os.MkdirAll(filepath.Dir(file), 0o700); err != nil {
			t.Fatal(err)
		}
		if err := os.WriteFile(file, []byte(text), mode); err != nil {
			t.Fatal(err)
		}
	}
	write("bin/systemctl", `#!/bin/sh
case "$*" in
*ActiveState*) echo active ;;
*MainPID*) echo 77 ;;
*EnvironmentFiles*) echo "EnvironmentFiles=/etc/etcd.env (ignore_errors=no)" ;;
esac
`, 0o700)
	write("bin/etcdctl", `#!/bin/sh
echo '{"level":"warn"}' >&2
[ "$ETCDCTL_CACERT $ETCDCTL_CERT $ETCDCTL_KEY" = "/ca.pem /node.pem /node-key.pem" ] || { echo "Error: $ETCDCTL_CERT is not known" >&2; exit 1; }
case "$*" in
*"endpoints=https://10.0.0.1:2379 "*"member list") echo '{"members":[1]}' ;;
*"alarm list") echo '{"alarms":[2]}' ;;
esac
`, 0o700)
	write("bin/program", "#!/bin/sh\necho 'etcd Version: 3.6.4'\n", 0o700)
	write("proc/77/environ", "HOME=/\x00ETCD_NAME=etcd-cp1\x00ETCDCTL_PASSWORD=hunter2\x00", 0o600)
	write("proc/77/cmdline", "/usr/local/bin/etcd\x00--config-file\x00"+dir+"/config\x00", 0o600)
	write("config", "name: x\ndata-dir: /d\n", 0o600)
	if err := os.Symlink(filepath.Join(dir, "bin/program"), filepath.Join(dir, "proc/77/exe")); err != nil {
		t.Fatal(err)
	}
	ask := func(client string) string {
		t.Helper()
		write("manifests/kube-apiserver.yaml", "spec:\n  containers:\n  - command:\n    - kube-apiserver\n    - --etcd-cafile=/ca.pem\n"+
			"    - --etcd-certfile="+client+"\n    - --etcd-keyfile=/node-key.pem\n", 0o600)
		argv := slices.Clone(ofUnits.AskTheirs("10.0.0.1").Argv)
		for i, a := range argv {
			argv[i] = strings.NewReplacer("manifests=/etc/kubernetes/manifests", "manifests="+dir+"/manifests", "proc=/proc",
				"proc="+dir+"/proc").Replace(a)
			if strings.Contains(a, "\n") {
				argv[i] = a
			}
		}
		cmd := exec.CommandContext(t.Context(), argv[0], argv[1:]...)
		cmd.Env = append(os.Environ(), "PATH="+filepath.Join(dir, "bin")+":"+os.Getenv("PATH"))
		out, err := cmd.CombinedOutput()
		if err != nil {
			t.Fatalf("%v\n%s", err, out)
		}
		var lines []string
		for line := range strings.Lines(string(out)) {
			if !strings.HasPrefix(line, "asked ") {
				lines = append(lines, line)
			}
		}
		return strings.Join(lines, "")
	}
	known := `state active
program ` + dir + `/bin/program
version 3.6.4
environment /etc/etcd.env
variable ETCD_NAME=etcd-cp1
argument --config-file
argument ` + dir + `/config
config ` + dir + `/config
line name: x
line data-dir: /d
client /ca.pem
`
	if diff := cmp.Diff(known+"client /node.pem\nclient /node-key.pem\nmembers {\"members\":[1]}\nalarms {\"alarms\":[2]}\n", ask("/node.pem")); diff != "" {
		t.Errorf("(-want +got):\n%s", diff)
	}
	const why = "why it does not say at https://10.0.0.1:2379 who its members are: /other.pem is not known\n"
	if diff := cmp.Diff(known+"client /other.pem\nclient /node-key.pem\n"+why, ask("/other.pem")); diff != "" {
		t.Errorf("where it does not answer (-want +got):\n%s", diff)
	}
}

// TestUnfit: a member is not taken over that could not go on as ours, whatever it is that keeps it from that. All of it is said at once.
func TestUnfit(t *testing.T) {
	for _, tc := range []struct {
		// was becomes is, in what the host says.
		was, is string
		change  func(*spec.Etcd)
		causes  []string
	}{
		{},
		{was: "state active", is: "state failed", causes: []string{"etcd.service is failed"}},
		{was: "state active", is: "pod /etc/kubernetes/manifests/etcd.yaml\nstate inactive", causes: []string{"it has /etc/kubernetes/manifests/etcd.yaml"}},
		{was: "DATA_DIR=/var/lib/etcd", is: "DATA_DIR=/data/etcd/", causes: []string{`data is "/data/etcd", and "/var/lib/etcd" is declared`}},
		{was: "DATA_DIR=/var/lib/etcd", is: "DATA_DIR=/data/etcd/", change: func(e *spec.Etcd) { e.DataDir = "/data/etcd" }},
		{was: "version", is: "variable ETCD_WAL_DIR=/var/lib/etcd/member/wal\nversion"},
		{was: "version", is: "variable ETCD_WAL_DIR=/wal\nversion", causes: []string{"write-ahead log is in /wal, and would be looked for in /var/lib"}},
		{was: "version", is: "variable ETCD_WAL_DIR=/wal\nversion", change: func(e *spec.Etcd) {
			e.ExtraArgs = []spec.Arg{{Name: "wal-dir", Value: "/wal"}}
		}},
		{was: "ADVERTISE_CLIENT_URLS=https://10.0.0.1:2379", is: "ADVERTISE_CLIENT_URLS=https://10.0.0.1:4001",
			causes: []string{"without https://10.0.0.1:2379"}},
		{was: "ADVERTISE_CLIENT_URLS=https://10.0.0.1:2379", is: "ADVERTISE_CLIENT_URLS=https://cp1:2379,https://10.0.0.1:2379/"},
		{was: "variable ETCD_CLIENT_CERT_AUTH=true", is: "variable ETCD_CLIENT_CERT_AUTH=false",
			causes: []string{"its clients by certificates: it lacks client-cert-auth"}},
		{was: "variable ETCD_PEER_TRUSTED_CA_FILE=", is: "variable ETCD_X=", causes: []string{"its peers by certificates: it lacks peer-trusted-ca-file"}},
		{was: "version", is: "variable ETCD_PEER_CERT_ALLOWED_CN=peer\nversion", causes: []string{"etcd has peer-cert-allowed-cn peer"}},
		{was: "version 3.6.4", is: "version 3.7.0", causes: []string{"its etcd is 3.7.0, and the bundle has v3.6.14: etcd does not start"}},
		{was: "version 3.6.4", is: "version 3.6.99"}, // of one minor version: etcd starts
		{was: "version 3.6.4", is: "version 3.5.21"},
		{was: "version 3.6.4", is: "version 3.4.37", causes: []string{"one minor version at a time"}},
		{was: "version 3.6.4", is: "version ", causes: []string{`version of its etcd is not known ("")`}},
		{was: "variable ETCD_DATA_DIR=/var/lib/etcd\nvariable ETCD_ADVERTISE_CLIENT_URLS=https://10.0.0.1:2379", is: "variable ETCD_DATA_DIR=/d",
			causes: []string{`data is "/d"`, "advertise-client-urls \"\", without"}},
	} {
		t.Run(tc.is, func(t *testing.T) {
			e := spec.Etcd{DataDir: "/var/lib/etcd"}
			if tc.change != nil {
				tc.change(&e)
			}
			has(t, theirsIn(t, strings.Replace(kubekeys, tc.was, tc.is, 1)).Unfit(e, "10.0.0.1", "v3.6.14"), tc.causes...)
		})
	}
}

// has wants a reason with each of these causes, and no other.
func has(t *testing.T, got []component.Reason, causes ...string) {
	t.Helper()
	fits := len(got) == len(causes)
	for i := range causes {
		fits = fits && strings.Contains(got[i].Cause, causes[i]) && got[i].Remedy != ""
	}
	if !fits {
		t.Errorf("got %+v, want %q", got, causes)
	}
}

// TestTheirAuthority: what members know each other by is taken over as it is, if it is one, and has signed what is in use.
func TestTheirAuthority(t *testing.T) {
	const dir = "/etc/ssl/etcd/ssl/"
	theirs := theirsIn(t, kubekeys)
	ca, other := authority(t), authority(t)
	disk := func() map[string][]byte {
		files := map[string][]byte{dir + "ca.pem": ca.Cert, dir + "ca-key.pem": ca.Key.Reveal()}
		for _, name := range []string{"member-cp1.pem", "node-cp1.pem"} {
			files[dir+name] = leaf(t, ca)
		}
		return files
	}
	for name, tc := range map[string]struct {
		change func(files map[string][]byte, theirs *etcd.Theirs)
		causes []string
		// keyless: the host has no key.
		keyless bool
	}{
		"one":         {change: func(map[string][]byte, *etcd.Theirs) {}},
		"without key": {change: func(f map[string][]byte, _ *etcd.Theirs) { delete(f, dir+"ca-key.pem") }, keyless: true},
		"another's key": {change: func(f map[string][]byte, _ *etcd.Theirs) { f[dir+"ca-key.pem"] = other.Key.Reveal() },
			causes: []string{"are no key pair"}},
		"two certificates": {change: func(f map[string][]byte, _ *etcd.Theirs) {
			f[dir+"ca.pem"] = slices.Concat(ca.Cert, other.Cert)
		}, causes: []string{"has 2 certificates"}},
		"none": {change: func(f map[string][]byte, _ *etcd.Theirs) { delete(f, dir+"ca.pem") }, causes: []string{"cannot be read"}},
		"another for peers": {change: func(f map[string][]byte, theirs *etcd.Theirs) {
			f["/peers.pem"], f["/peer.pem"] = other.Cert, leaf(t, ca)
			theirs.Settings["peer-trusted-ca-file"], theirs.Settings["peer-cert-file"] = "/peers.pem", "/peer.pem"
		}, causes: []string{"its peers by /peers.pem, which is another authority"}},
		"another's client": {change: func(f map[string][]byte, _ *etcd.Theirs) { f[dir+"node-cp1.pem"] = leaf(t, other) },
			causes: []string{"node-cp1.pem, which is in use, is not signed"}},
	} {
		t.Run(name, func(t *testing.T) {
			files, theirs := disk(), theirsIn(t, kubekeys)
			tc.change(files, &theirs)
			for _, wanted := range theirs.Files() {
				if strings.HasSuffix(wanted, "-cp1-key.pem") {
					t.Errorf("the key %s is read, which nobody needs", wanted)
				}
			}
			pair, reasons := theirs.Authority(files, time.Now())
			has(t, reasons, tc.causes...)
			if len(tc.causes) == 0 && (string(pair.Cert) != string(ca.Cert) || pair.Key.IsZero() != tc.keyless) {
				t.Error("the pair is another")
			}
		})
	}
	theirs.Settings["trusted-ca-file"] = "/etc/ssl/etcd/ssl/ca.crt"
	if got := theirs.Key(); got != "/etc/ssl/etcd/ssl/ca.key" {
		t.Errorf("the key of ca.crt is looked for in %s", got)
	}
}

func authority(t *testing.T) pki.KeyPair {
	t.Helper()
	ca, err := pki.NewCA(pki.CARequest{CommonName: "etcd-ca", Key: pki.ECDSAP256})
	if err != nil {
		t.Fatal(err)
	}
	return ca
}

func leaf(t *testing.T, ca pki.KeyPair) []byte {
	t.Helper()
	made, err := ca.Sign(pki.LeafRequest{CommonName: "x", Usages: []pki.Usage{pki.Client}})
	if err != nil {
		t.Fatal(err)
	}
	return made.Cert
}

// TestFlagsOfUnit: what our unit runs etcd with is what a host is compared with.
func TestFlagsOfUnit(t *testing.T) {
	content, err := os.ReadFile("testdata/unit-tuned.txt")
	if err != nil {
		t.Fatal(err)
	}
	got := ofUnits.FlagsOf(string(content))
	for _, wanted := range []string{"--data-dir=/data/100% etcd", `--max-txn-ops=$HOME "\`, "--name=n1"} {
		if !slices.Contains(got, wanted) {
			t.Errorf("%s is not among %q", wanted, got)
		}
	}
	if !slices.IsSorted(got) {
		t.Errorf("they are in another order: %q", got)
	}
}
