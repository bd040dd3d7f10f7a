// Copyright 2026 The cluster-api-provider-kubexm Authors.
// SPDX-License-Identifier: Apache-2.0

//go:build hosts

package door_test

import (
	"context"
	"errors"
	"fmt"
	"os"
	"os/exec"
	"strings"
	"testing"
	"time"

	cryptossh "golang.org/x/crypto/ssh"
	"k8s.io/apimachinery/pkg/util/wait"

	"github.com/mensylisir/cluster-api-provider-kubexm/bootstrap/door"
	"github.com/mensylisir/cluster-api-provider-kubexm/pkg/host"
	"github.com/mensylisir/cluster-api-provider-kubexm/pkg/host/ssh"
	"github.com/mensylisir/cluster-api-provider-kubexm/pkg/secret"
	"github.com/mensylisir/cluster-api-provider-kubexm/test/hosts"
	"github.com/mensylisir/cluster-api-provider-kubexm/test/lab"
)

// visitor is one Machine's way to a host.
type visitor struct {
	*testing.T
	host    *hosts.Host
	options door.Options
	birth   string
	login   ssh.Auth
}

func visit(t *testing.T, h *hosts.Host, nonce string) *visitor {
	t.Helper()
	v := &visitor{T: t, host: h, options: options(t)}
	var err error
	if v.birth, err = ssh.AuthorizedKey(v.options.BirthKey, secret.Value{}); err != nil {
		t.Fatal(err)
	}
	v.options.Nonce = nonce
	v.newLogin()
	return v
}

// newLogin gives the visitor another key to log in with.
func (v *visitor) newLogin() {
	v.Helper()
	private, err := ssh.NewUserKey("")
	if err != nil {
		v.Fatal(err)
	}
	if v.options.AuthorizedKey, err = ssh.AuthorizedKey(private, secret.Value{}); err != nil {
		v.Fatal(err)
	}
	v.login = ssh.Auth{PrivateKeys: []secret.Value{private}}
}

// run has the bootstrap data run, as an infrastructure provider does, and returns what it says if it fails.
func (v *visitor) run(shell, script string) string {
	v.Helper()
	if out, err := v.host.Command(v.Context(), shell, "-c", script).CombinedOutput(); err != nil {
		return fmt.Sprintf("%v: %s", err, out)
	}
	return ""
}

func (v *visitor) open(shell string) {
	v.Helper()
	if failed := v.run(shell, scriptOf(v.T, v.options)); failed != "" {
		v.Fatal(failed)
	}
}

// dial logs in if the host shows the key, and tries until that ends as it is to. While sshd is reloaded, it shows what it showed before,
// and then refuses connections.
func (v *visitor) dial(key string, want host.Kind) (h host.Host, err error) {
	_ = wait.PollUntilContextTimeout(v.Context(), 100*time.Millisecond, 10*time.Second, true, func(ctx context.Context) (bool, error) {
		got, failed := ssh.Dial(ctx, ssh.Config{
			Name: v.host.Name, Address: v.host.Address, Port: int32(v.host.Port), User: v.options.User,
			Auth: v.login, HostKey: ssh.HostKey{Pinned: []string{key}},
		})
		if failed != nil && ctx.Err() != nil && err != nil {
			return false, nil // our time has ended, not the host: what it said before counts
		}
		h, err = got, failed
		if err == nil && want != "" {
			err = errors.Join(errors.New("it let us in"), h.Close())
		}
		return host.KindOf(err) == want && (err == nil) == (want == ""), nil
	})
	return h, err
}

// as does something on the host that shows the key, as root.
func (v *visitor) as(key string, do func(context.Context, host.Host) error) {
	v.Helper()
	h, err := v.dial(key, "")
	if err != nil {
		v.Fatal(err)
	}
	if err := do(v.Context(), h); err != nil {
		v.Error(err)
	}
	if err := h.Close(); err != nil {
		v.Error(err)
	}
}

// in logs in and out.
func (v *visitor) in(key string) {
	v.Helper()
	v.as(key, func(context.Context, host.Host) error { return nil })
}

// sh runs a script on the host and returns what it says.
func (v *visitor) sh(script string, args ...string) string {
	v.Helper()
	out, err := v.host.Command(v.Context(), append([]string{"sh", "-euc", script, "sh"}, args...)...).CombinedOutput()
	if err != nil {
		v.Fatalf("%v: %s", err, out)
	}
	return strings.TrimSpace(string(out))
}

// until waits until a command succeeds on the host.
func (v *visitor) until(command string) {
	v.Helper()
	err := wait.PollUntilContextTimeout(v.Context(), 200*time.Millisecond, time.Minute, true, func(ctx context.Context) (bool, error) {
		return v.host.Command(ctx, "sh", "-c", command).Run() == nil, nil
	})
	if err != nil {
		v.Fatalf("%s: %v", command, err)
	}
}

// state prints all that the bootstrap data may have to do with. Lines of the record may be there twice.
const state = `state() {
	set -- /etc/kubexm /etc/ssh /etc/sudoers.d /home /root/.ssh /run/cluster-api
	find "$@" -printf "%p %y %m %U:%G\n" 2>/dev/null | sort
	find "$@" -type f ! -path "*/door/made" ! -path "*/door/users" ! -path "*/door/lines" -exec sha256sum {} + 2>/dev/null | sort
	for f in made users lines; do sort -u "/etc/kubexm/door/$f" 2>/dev/null; done
	getent passwd
	getent group
}
`

func (v *visitor) refused(key string, want host.Kind) {
	v.Helper()
	if _, err := v.dial(key, want); host.KindOf(err) != want {
		v.Errorf("got %v, want %s", err, want)
	}
}

// clean waits until the host is as it was: a user that was made goes when we have.
func (v *visitor) clean(before hosts.Snapshot) {
	v.Helper()
	var diff []string
	err := wait.PollUntilContextTimeout(v.Context(), time.Second, 2*time.Minute, true, func(ctx context.Context) (bool, error) {
		after, err := v.host.Snapshot(ctx)
		if err != nil {
			return false, err
		}
		diff = hosts.Diff(before, after)
		return len(diff) == 0, nil
	})
	if err != nil {
		v.Errorf("%v; the host differs:\n%s", err, strings.Join(diff, "\n"))
	}
}

// TestDoor is a host's life with Machines after one another.
func TestDoor(t *testing.T) {
	t.Parallel()
	pool := lab.Pool(t, hosts.Options{Name: fmt.Sprintf("door-%d", os.Getpid()), Count: 1})
	h := pool.Hosts[0]
	before, err := h.Snapshot(t.Context())
	if err != nil {
		t.Fatal(err)
	}
	own := string(cryptossh.MarshalAuthorizedKey(h.HostKey))

	first := visit(t, h, "sha256:01")
	first.open("bash")
	opened := first.sh(state + "state")
	first.open("sh") // again
	if again := first.sh(state + "state"); again != opened {
		t.Errorf("run twice, it leaves\n%s\nwant\n%s", again, opened)
	}
	first.in(own) // whom people know is still shown
	public := ""
	for range 2 {
		first.as(first.birth, func(ctx context.Context, c host.Host) error {
			if nonce, err := door.Nonce(ctx, c); err != nil || nonce != first.options.Nonce {
				t.Errorf("it is the door of %q (%v)", nonce, err)
			}
			made, err := door.Rekey(ctx, c)
			if public != "" && made != public {
				t.Error("another key was made")
			}
			public = made
			return err
		})
	}
	for range 2 {
		first.as(public, door.Retire)
	}
	first.refused(first.birth, host.KindHostKey)
	first.open("sh") // old bootstrap data does not bring its key back
	first.refused(first.birth, host.KindHostKey)
	first.options.BirthKey = secret.Value{}
	first.open("sh") // and new data, which has none, leaves the host's
	first.in(public)
	first.in(own)

	second := visit(t, h, "sha256:02")
	second.open("bash")
	first.refused(own, host.KindAuth)
	second.refused(public, host.KindHostKey)
	second.as(second.birth, func(ctx context.Context, c host.Host) error {
		public, err = door.Rekey(ctx, c)
		return err
	})

	// A third Machine has the host before the user of the second is gone.
	third := visit(t, h, "sha256:03")
	second.as(public, func(ctx context.Context, c host.Host) error {
		defer third.open("bash")
		return door.Close(ctx, c)
	})
	third.until("! systemctl -q is-active kubexm-door-close")
	second.refused(own, host.KindAuth)
	third.as(third.birth, door.Close)
	third.clean(before)
	third.refused(own, host.KindAuth)
	if out := third.sh("systemctl --failed --no-legend"); out != "" {
		t.Errorf("units failed: %s", out)
	}

	c, err := ssh.Dial(t.Context(), lab.SSH(h))
	if err != nil {
		t.Fatal(err)
	}
	defer c.Close()
	if err := door.Close(t.Context(), c); err != nil {
		t.Errorf("a door that is closed: %v", err)
	}
	if nonce, err := door.Nonce(t.Context(), c); nonce != "" || err != nil {
		t.Errorf("a door that is closed is that of %q (%v)", nonce, err)
	}
	if _, err := door.Rekey(t.Context(), c); host.KindOf(err) != host.KindCommand {
		t.Errorf("a door that is closed gets a key (%v)", err)
	}
}

// TestDoorBesideOthers opens a host for a user that others use too, where sshd's configuration is one file and ends in a Match block.
func TestDoorBesideOthers(t *testing.T) {
	t.Parallel()
	pool := lab.Pool(t, hosts.Options{Name: fmt.Sprintf("doorbeside-%d", os.Getpid()), Count: 1})
	h := pool.Hosts[0]
	v := visit(t, h, "sha256:04")
	v.sh(`sed -i /^Include/d /etc/ssh/sshd_config
printf "HostKey /etc/ssh/ssh_host_ed25519_key\nMatch User nobody\n\tX11Forwarding no" >>/etc/ssh/sshd_config
systemctl reload ssh`)
	before, err := h.Snapshot(t.Context())
	if err != nil {
		t.Fatal(err)
	}
	own, other := string(cryptossh.MarshalAuthorizedKey(h.HostKey)), v.sh("cat /etc/ssh/ssh_host_ecdsa_key.pub")
	v.options.User, v.options.NoPasswordSudo = hosts.Ops, false
	v.open("sh")
	v.in(v.birth)
	v.in(own)
	v.refused(other, host.KindHostKey) // whom the host did not show
	byKey := v.login

	// The same Machine lets in with another key.
	v.newLogin()
	v.open("sh")
	v.in(v.birth)
	v.login, byKey = byKey, v.login
	v.refused(v.birth, host.KindAuth)
	v.login = byKey

	// What others have added since stays, and is all that does.
	v.sh("echo '" + authorized + "' >>/home/ops/.ssh/authorized_keys")
	v.as(v.birth, door.Close)
	v.sh("sed -i '\\|^" + authorized + "$|d' /home/ops/.ssh/authorized_keys")
	v.clean(before)

	// sshd refuses its configuration for another reason.
	v.sh("cp -p /etc/ssh/sshd_config /run/sane; sed -i '1iNonsense yes' /etc/ssh/sshd_config; cp -p /etc/ssh/sshd_config /run/broken")
	if failed := v.run("sh", scriptOf(t, v.options)); !strings.Contains(failed, "sshd refuses") || !strings.Contains(failed, "Nonsense") {
		t.Errorf("it says %q", failed)
	}
	v.sh("cmp /etc/ssh/sshd_config /run/broken && [ ! -e /etc/kubexm/door/nonce ] && [ ! -e /run/cluster-api ]")
	v.sh("cat /run/sane >/etc/ssh/sshd_config; rm /run/sane /run/broken")
	v.open("bash")
	v.as(v.birth, door.Close)
	v.clean(before)
}

// TestDoorBeforeHostKeys opens a host that has not made its own keys yet: it shows them when it has.
func TestDoorBeforeHostKeys(t *testing.T) {
	t.Parallel()
	pool := lab.Pool(t, hosts.Options{Name: fmt.Sprintf("doorearly-%d", os.Getpid()), Count: 1})
	h := pool.Hosts[0]
	before, err := h.Snapshot(t.Context())
	if err != nil {
		t.Fatal(err)
	}
	own := string(cryptossh.MarshalAuthorizedKey(h.HostKey))
	v := visit(t, h, "sha256:07")
	v.sh("mkdir /root/keys; mv /etc/ssh/ssh_host_* /root/keys; systemctl stop ssh")
	v.open("sh")
	v.sh("mv /root/keys/* /etc/ssh; rmdir /root/keys; systemctl start ssh")
	v.in(own)
	v.as(v.birth, door.Close)
	v.clean(before)
}

// TestDoorLeavesOthers: what has a name like ours stays, and a user's links have root make nothing elsewhere.
func TestDoorLeavesOthers(t *testing.T) {
	t.Parallel()
	pool := lab.Pool(t, hosts.Options{Name: fmt.Sprintf("doorothers-%d", os.Getpid()), Count: 1})
	h := pool.Hosts[0]
	v := visit(t, h, "sha256:08")
	v.options.User = hosts.NoSudo
	v.sh(`echo "nosudo ALL=(ALL) /bin/true" >/etc/sudoers.d/90-kubexm-site
cd /home/nosudo/.ssh
mv authorized_keys kept
ln -s /root/elsewhere authorized_keys`)
	before, err := h.Snapshot(t.Context())
	if err != nil {
		t.Fatal(err)
	}
	if failed := v.run("sh", scriptOf(t, v.options)); !strings.Contains(failed, "is not in /home/nosudo") {
		t.Errorf("it says %q", failed)
	}
	v.sh("[ ! -e /root/elsewhere ]; ln -sf kept /home/nosudo/.ssh/authorized_keys")
	v.open("sh")
	v.in(v.birth)
	v.as(v.birth, door.Close)
	v.sh("ln -sf /root/elsewhere /home/nosudo/.ssh/authorized_keys")
	v.clean(before)
}

// TestDoorIsCut ends the bootstrap data after every fourth of its commands, those of functions and blocks too, and runs it again: each
// cut takes seconds.
func TestDoorIsCut(t *testing.T) {
	t.Parallel()
	pool := lab.Pool(t, hosts.Options{Name: fmt.Sprintf("doorcut-%d", os.Getpid()), Count: 1})
	h := pool.Hosts[0]
	before, err := h.Snapshot(t.Context())
	if err != nil {
		t.Fatal(err)
	}
	// The host had another Machine before, which let in otherwise.
	earlier, v := visit(t, h, "sha256:05"), visit(t, h, "sha256:06")
	v.options.NoPasswordSudo = false
	had, script := scriptOf(t, earlier.options), scriptOf(t, v.options)
	const driver = state + `
had=$1 cut=$2 whole=$3
[ -z "$had" ] || sh -c "$had" || exit 2
[ -z "$cut" ] || ! sh -c "$cut" 2>/dev/null || echo "it was not cut"
sh -c "$whole" || exit 2
state
rm -rf /etc/kubexm /etc/ssh/sshd_config.d/10-kubexm.conf /etc/sudoers.d/90-kubexm /run/cluster-api
userdel -r kubexm 2>/dev/null || :
`
	_, own, found := strings.Cut(script, "-----END EC PRIVATE KEY-----'\n")
	if !found {
		t.Fatal("it has no birth key")
	}
	variables := strings.TrimSuffix(script, own)
	for name, had := range map[string]string{"fresh": "", "used": had} {
		want, cuts, places := v.sh(driver, had, "", script), 0, 0
		for at, char := range own {
			cut := variables + own[:at+1] + "exit 1\n" + own[at+1:]
			if char != '\n' || exec.Command("sh", "-n", "-c", cut).Run() != nil {
				continue
			}
			if places++; places%4 != 0 {
				continue
			}
			got := v.sh(driver, had, cut, script)
			if strings.HasPrefix(got, "it was not cut\n") {
				continue // nothing comes there
			}
			cuts++
			if got != want {
				line := own[strings.LastIndexByte(own[:at], '\n')+1 : at]
				t.Errorf("%s: cut after %q, it leaves\n%s\nwant\n%s", name, line, got, want)
			}
		}
		if t.Logf("%s: cut %d times", name, cuts); cuts < 10 {
			t.Errorf("%s: it was cut %d times only", name, cuts)
		}
	}
	v.options.NoPasswordSudo = true // to close it, one must be root
	v.open("bash")
	v.as(v.birth, door.Close)
	v.clean(before)
}
