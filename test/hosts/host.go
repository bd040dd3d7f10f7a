// Copyright 2026 The cluster-api-provider-kubexm Authors.
// SPDX-License-Identifier: Apache-2.0

package hosts

import (
	"context"
	"fmt"
	"net/netip"
	"os"
	"os/exec"
	"strconv"
	"strings"

	"golang.org/x/crypto/ssh"
)

// Accounts of every host.
const (
	Root   = "root"
	Ops    = "ops"    // sudo without a password
	SudoPW = "sudopw" // sudo with Options.SudoPassword
	NoSudo = "nosudo" // no sudo
)

// Host is one test host. Its name, address, host keys and files last until the
// pool is stopped.
type Host struct {
	Name    string // its host name, <pool>-<number>
	Address string // IPv4, reachable from the machine and from the pool's other hosts
	// Address6 is IPv6 and so reachable, in a dual stack pool; Find does not tell it.
	Address6 string
	Port     int    // of sshd, 22
	User     string // the account to use unless a test wants another: Ops

	KeyPath string        // private key file in OpenSSH's format; empty when the pool has no Dir
	Signer  ssh.Signer    // the same key
	HostKey ssh.PublicKey // the host's Ed25519 key, read through Docker, so known before any connection

	pool      string
	number    int
	container string
}

func newHost(pool string, number int, address netip.Addr) *Host {
	return &Host{
		Name:      fmt.Sprintf("%s-%d", pool, number),
		Address:   address.String(),
		Port:      22,
		User:      Ops,
		pool:      pool,
		number:    number,
		container: fmt.Sprintf("%s-%d", objectName(pool), number),
	}
}

// Capabilities of a host are all but those that a machine may lack in its bounding set
// (SYS_RESOURCE) or its Docker engine not know (BPF, PERFMON, CHECKPOINT_RESTORE):
// --privileged asks for every one and is refused on such machines.
func Capabilities() []string {
	return strings.Fields(`
		AUDIT_CONTROL AUDIT_READ AUDIT_WRITE BLOCK_SUSPEND CHOWN DAC_OVERRIDE
		DAC_READ_SEARCH FOWNER FSETID IPC_LOCK IPC_OWNER KILL LEASE LINUX_IMMUTABLE
		MAC_ADMIN MAC_OVERRIDE MKNOD NET_ADMIN NET_BIND_SERVICE NET_BROADCAST NET_RAW
		SETFCAP SETGID SETPCAP SETUID SYS_ADMIN SYS_BOOT SYS_CHROOT SYS_MODULE SYS_NICE
		SYS_PACCT SYS_PTRACE SYS_RAWIO SYS_TIME SYS_TTY_CONFIG SYSLOG WAKE_ALARM`)
}

// create makes the host's container and starts it, which takes about a second and is
// not cut short when the context ends.
func (h *Host) create(ctx context.Context, image string) error {
	label := poolLabel + "=" + h.pool
	args := []string{"run", "--detach",
		"--name", h.container,
		"--hostname", h.Name,
		"--network", objectName(h.pool), "--ip", h.Address,
		"--label", label,
		"--label", hostLabel + "=" + strconv.Itoa(h.number),
		"--label", addrLabel + "=" + h.Address,
		"--security-opt", "seccomp=unconfined",
		"--security-opt", "apparmor=unconfined",
		"--security-opt", "systempaths=unconfined",
		"--cgroupns", "private",
		"--device-cgroup-rule", "a *:* rwm",
		"--tmpfs", "/run", "--tmpfs", "/tmp:exec",
		// Overlayfs, which container runtimes use below /var, cannot sit on Docker's own.
		"--mount", "type=volume,source=" + h.container + "-var,destination=/var,volume-label=" + label,
		// What systemd takes for "power off".
		"--stop-signal", "SIGRTMIN+3",
		// The kernel ends a container's first process by a signal when that asks for a reboot. What Docker itself
		// stops or kills stays off.
		"--restart", "on-failure",
	}
	if h.Address6 != "" {
		// Docker leaves IPv6 off for all but the interface that it makes.
		args = append(args, "--ip6", h.Address6,
			"--sysctl", "net.ipv6.conf.all.disable_ipv6=0", "--sysctl", "net.ipv6.conf.default.disable_ipv6=0")
	}
	for _, capability := range Capabilities() {
		args = append(args, "--cap-add", capability)
	}
	for _, device := range []string{"/dev/kmsg", "/dev/fuse"} {
		if _, err := os.Stat(device); err == nil {
			args = append(args, "--device", device)
		}
	}
	// A client that is ended here leaves the engine with half a container.
	_, err := docker(context.WithoutCancel(ctx), nil, append(args, image)...)
	return err
}

// recreate removes the host with all that it keeps, and makes it again.
func (h *Host) recreate(ctx context.Context, image string, keys []ssh.PublicKey) error {
	if _, err := docker(ctx, nil, "rm", "--force", h.container); err != nil {
		return err
	}
	if _, err := docker(ctx, nil, "volume", "rm", h.container+"-var"); err != nil {
		return err
	}
	if err := h.create(ctx, image); err != nil {
		return err
	}
	if err := h.WaitReady(ctx); err != nil {
		return err
	}
	return h.authorize(ctx, h.Signer, keys)
}

// Exec runs a command on the host as root, through Docker and not SSH, and returns
// its standard output without the final newline.
func (h *Host) Exec(ctx context.Context, argv ...string) (string, error) {
	return docker(ctx, nil, h.execArgs(argv)...)
}

// Command returns a command that will run on the host as Exec's do, for callers
// that want its standard input and output.
func (h *Host) Command(ctx context.Context, argv ...string) *exec.Cmd {
	return dockerCommand(ctx, h.execArgs(argv)...)
}

func (h *Host) execArgs(argv []string) []string {
	return append([]string{"exec", "--interactive", h.container}, argv...)
}

// Pause freezes every process of the host: connections stay open and silent.
func (h *Host) Pause(ctx context.Context) error { return h.docker(ctx, "pause") }

// Unpause ends Pause.
func (h *Host) Unpause(ctx context.Context) error { return h.docker(ctx, "unpause") }

// Restart shuts the host down in order and boots it. It returns when the host has
// begun to boot; WaitReady tells when it is there again.
func (h *Host) Restart(ctx context.Context) error { return h.docker(ctx, "restart", "--time", "30") }

// Kill ends every process of the host at once, as a power cut does. The host stays
// off until Start; one that reboots by itself (systemctl reboot) comes back.
func (h *Host) Kill(ctx context.Context) error { return h.docker(ctx, "kill") }

// Start boots a host that is off. On a host that runs it does nothing.
func (h *Host) Start(ctx context.Context) error { return h.docker(ctx, "start") }

func (h *Host) docker(ctx context.Context, verb string, flags ...string) error {
	return h.act(ctx, verb, append(append([]string{verb}, flags...), h.container)...)
}

func (h *Host) act(ctx context.Context, verb string, args ...string) error {
	if _, err := docker(ctx, nil, args...); err != nil {
		return fmt.Errorf("%s host %s: %w", verb, h.Name, err)
	}
	return nil
}
