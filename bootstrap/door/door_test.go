// Copyright 2026 The cluster-api-provider-kubexm Authors.
// SPDX-License-Identifier: Apache-2.0

package door_test

import (
	"bytes"
	"encoding/json"
	"os/exec"
	"path/filepath"
	"strings"
	"testing"

	"github.com/coreos/ignition/v2/config/v3_0"
	"github.com/vincent-petithory/dataurl"
	"sigs.k8s.io/yaml"

	"github.com/mensylisir/cluster-api-provider-kubexm/bootstrap/door"
	"github.com/mensylisir/cluster-api-provider-kubexm/internal/golden"
	"github.com/mensylisir/cluster-api-provider-kubexm/pkg/host/ssh"
	"github.com/mensylisir/cluster-api-provider-kubexm/pkg/secret"
)

const authorized = "ssh-ed25519 AAAAC3NzaC1lZDI1NTE5AAAAIJdD7y3aLq454yWBdwLWbieU1ebz9/cu7/QEXn9OIeZJ"

// options are those of most Machines.
func options(t *testing.T) door.Options {
	t.Helper()
	birth, public, err := door.NewBirthKey()
	if err != nil || !strings.HasPrefix(public, "ecdsa-sha2-nistp384 ") {
		t.Fatal(public, err)
	}
	return door.Options{
		Nonce: "sha256:" + strings.Repeat("0a", 32), User: "kubexm", AuthorizedKey: authorized + " comment",
		NoPasswordSudo: true, BirthKey: birth,
	}
}

func scriptOf(t *testing.T, o door.Options) string {
	t.Helper()
	script, err := o.Script()
	if err != nil {
		t.Fatal(err)
	}
	return script
}

// TestGolden shows all that a host gets. It has no birth key: private keys do not belong into a repository.
func TestGolden(t *testing.T) {
	o := options(t)
	o.BirthKey = secret.Value{}
	script := scriptOf(t, o)
	cloudConfig, err := door.CloudConfig(script)
	if err != nil {
		t.Fatal(err)
	}
	o.Manager = "capi.example.org:4334"
	home := scriptOf(t, o)
	ignition, err := door.Ignition("echo hello\n")
	if err != nil {
		t.Fatal(err)
	}
	var indented bytes.Buffer
	if err := json.Indent(&indented, ignition, "", "  "); err != nil {
		t.Fatal(err)
	}
	for name, got := range map[string]string{
		"open.txt": script, "open-and-call-home.txt": home, "cloud-config.yaml": string(cloudConfig), "ignition.json": indented.String() + "\n",
	} {
		golden.File(t, filepath.Join("testdata", name), got)
	}
}

// TestScript is small, the same for equal options, without what executors take for a template, and understood by both shells that run it.
func TestScript(t *testing.T) {
	o := options(t)
	script := scriptOf(t, o)
	if again := scriptOf(t, o); again != script {
		t.Error("it differs from call to call")
	}
	const most = 4 << 10
	if len(script) > most {
		t.Errorf("it has %d bytes, want at most %d", len(script), most)
	}
	o.Manager = "[2001:db8::1]:4334"
	home := scriptOf(t, o)
	if most := 6 << 10; len(home) > most || !strings.Contains(home, "\nto='2001:db8::1/4334'\n") {
		t.Errorf("it has %d bytes, want at most %d where the host connects to the manager:\n%s", len(home), most, home)
	}
	if strings.Contains(script, "{{") {
		t.Error("it has two braces, which begin a template")
	}
	if strings.Count(script, string(o.BirthKey.Reveal()[:64])) != 1 {
		t.Error("it has the birth key not once")
	}
	for _, shell := range []string{"bash", "dash"} {
		for _, script := range []string{script, home} {
			if out, err := exec.Command(shell, "-n", "-c", script).CombinedOutput(); err != nil {
				t.Errorf("%s: %v: %s", shell, err, out)
			}
		}
	}
}

// TestCloudConfig is one string below runcmd, and nothing else.
func TestCloudConfig(t *testing.T) {
	for _, script := range []string{scriptOf(t, options(t)), "true", "a: b # c\n\n  d\n", "- 'x'\n"} {
		data, err := door.CloudConfig(script)
		if err != nil {
			t.Fatal(err)
		}
		var read map[string][]string
		if err := yaml.UnmarshalStrict(data, &read); err != nil || len(read) != 1 || len(read["runcmd"]) != 1 || read["runcmd"][0] != script {
			t.Errorf("%q is read as %q (%v)", script, read, err)
		}
		if !strings.HasPrefix(string(data), "#cloud-config\nruncmd:\n- ") {
			t.Errorf("it begins with %.40q", data)
		}
	}
}

// TestIgnition is an Ignition config to Ignition's own parser, which runs the script as root alone may read it.
func TestIgnition(t *testing.T) {
	for _, script := range []string{scriptOf(t, options(t)), "true", "", "a: b # c\n\n  d\n", "- 'x' \"y\" é %41\n"} {
		data, err := door.Ignition(script)
		if err != nil {
			t.Fatal(err)
		}
		if again, _ := door.Ignition(script); !bytes.Equal(data, again) {
			t.Error("it differs from call to call")
		}
		config, report, err := v3_0.Parse(data)
		if err != nil || len(report.Entries) > 0 {
			t.Fatalf("Ignition refuses it: %v\n%s", err, report.String())
		}
		if len(config.Storage.Files) != 1 || len(config.Systemd.Units) != 1 {
			t.Fatalf("it has %d files and %d units", len(config.Storage.Files), len(config.Systemd.Units))
		}
		file, unit := config.Storage.Files[0], config.Systemd.Units[0]
		content, err := dataurl.DecodeString(*file.Contents.Source)
		if err != nil || string(content.Data) != script || *file.Mode != 0o700 {
			t.Errorf("%q is read as %q with mode %o (%v)", script, content.Data, *file.Mode, err)
		}
		if !*unit.Enabled || !strings.Contains(*unit.Contents, "\nExecStart=/bin/sh "+file.Path+"\n") {
			t.Errorf("the unit does not run %s: %s", file.Path, *unit.Contents)
		}
	}
	// So much of user data every infrastructure takes, and Ignition is the longer form.
	const most = 8 << 10
	if data, err := door.Ignition(scriptOf(t, options(t))); err != nil || len(data) > most {
		t.Errorf("it has %d bytes (%v), want at most %d", len(data), err, most)
	}
}

// TestOptionsAreChecked: what becomes part of a script that root runs is nothing else than it is said to be.
func TestOptionsAreChecked(t *testing.T) {
	user, err := ssh.NewUserKey("")
	if err != nil {
		t.Fatal(err)
	}
	around := func(before, after string) func(*door.Options) {
		return func(o *door.Options) { o.BirthKey = secret.New(before + string(o.BirthKey.Reveal()) + after) }
	}
	for name, change := range map[string]func(*door.Options){
		"no nonce":                             func(o *door.Options) { o.Nonce = "" },
		"a nonce that ends its quotes":         func(o *door.Options) { o.Nonce = "x'; reboot; '" },
		"a nonce of two lines":                 func(o *door.Options) { o.Nonce = "x\ny" },
		"a nonce that ends in a line's end":    func(o *door.Options) { o.Nonce = "x\n" },
		"a nonce without end":                  func(o *door.Options) { o.Nonce = strings.Repeat("x", 129) },
		"no user":                              func(o *door.Options) { o.User = "" },
		"a user that ends its quotes":          func(o *door.Options) { o.User = "x';reboot;'" },
		"a user that is an option":             func(o *door.Options) { o.User = "-o" },
		"a user of two lines":                  func(o *door.Options) { o.User = "x\nALL" },
		"a user that is everybody to sudo":     func(o *door.Options) { o.User = "ALL" },
		"a user that is a number":              func(o *door.Options) { o.User = "0" },
		"a user of a domain":                   func(o *door.Options) { o.User = `corp\x` },
		"no key":                               func(o *door.Options) { o.AuthorizedKey = "" },
		"a key with a command":                 func(o *door.Options) { o.AuthorizedKey = `command="x" ` + authorized },
		"two keys":                             func(o *door.Options) { o.AuthorizedKey = authorized + "\n" + authorized },
		"a key that is none":                   func(o *door.Options) { o.AuthorizedKey = "ssh-ed25519 AAAA'; reboot; '" },
		"a birth key that is none":             func(o *door.Options) { o.BirthKey = secret.New("'; reboot; '") },
		"a birth key that is damaged":          func(o *door.Options) { o.BirthKey = secret.New("x" + string(o.BirthKey.Reveal())[1:]) },
		"a birth key with text before it":      around("'; reboot; '\n", ""),
		"a birth key with text after it":       around("", "'; reboot; '\n"),
		"a birth key with another":             func(o *door.Options) { o.BirthKey = secret.New(strings.Repeat(string(o.BirthKey.Reveal()), 2)) },
		"a birth key of a type that hosts use": func(o *door.Options) { o.BirthKey = user },
		"a birth key with a header": func(o *door.Options) {
			o.BirthKey = secret.New(strings.Replace(string(o.BirthKey.Reveal()), "KEY-----\n", "KEY-----\nX: '; reboot; '\n\n", 1))
		},
	} {
		o := options(t)
		change(&o)
		if script, err := o.Script(); err == nil || strings.Contains(err.Error(), "PRIVATE KEY") {
			t.Errorf("%s: error %v, script %q", name, err, script)
		}
	}
}

// TestComment: a key's comment is left out: it is anybody's text.
func TestComment(t *testing.T) {
	o := options(t)
	o.AuthorizedKey = authorized + " it's mine'; reboot; '"
	if script := scriptOf(t, o); strings.Contains(script, "reboot") || !strings.Contains(script, "\nline='"+authorized+"'\n") {
		t.Errorf("the script is %s", script)
	}
}

// TestAuthority lets nobody in by the key itself.
func TestAuthority(t *testing.T) {
	o := options(t)
	for principal, options := range map[string]string{"kubexm": "cert-authority", "kubexm@prod": `cert-authority,principals="kubexm@prod"`} {
		o.Principal = principal
		want := "line='" + options + " " + authorized + "'"
		if script := scriptOf(t, o); !strings.Contains(script, "\n"+want+"\n") {
			t.Errorf("it has no line %s", want)
		}
	}
	const most = 4 << 10
	if o.Principal = o.User; len(scriptOf(t, o)) > most {
		t.Errorf("it has %d bytes, want at most %d", len(scriptOf(t, o)), most)
	}
	for _, bad := range []string{"x'; reboot; '", `x",command="reboot`, "x,root", "x y", "x\ny", `x\`, "é", strings.Repeat("x", 129)} {
		o.Principal = bad
		if _, err := o.Script(); err == nil {
			t.Errorf("the principal %q is taken", bad)
		}
	}
}

// TestSudo is for those who are not root.
func TestSudo(t *testing.T) {
	o := options(t)
	for _, c := range []struct {
		user string
		asks bool
		want string
	}{{"kubexm", true, "\nsudo='yes'\n"}, {"kubexm", false, "\nsudo=''\n"}, {"root", true, "\nsudo=''\n"}} {
		o.User, o.NoPasswordSudo = c.user, c.asks
		if script := scriptOf(t, o); !strings.Contains(script, c.want) {
			t.Errorf("%+v: it has not %q", c, c.want)
		}
	}
}
