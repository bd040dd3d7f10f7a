// Copyright 2026 The cluster-api-provider-kubexm Authors.
// SPDX-License-Identifier: Apache-2.0

package hosts

import (
	"context"
	"errors"
	"fmt"
	"net/netip"
	"regexp"
	"strconv"
	"time"

	"golang.org/x/crypto/ssh"
	"golang.org/x/sync/errgroup"
)

const (
	poolLabel  = "kubexm.test/pool"  // on containers, volumes and the network: the pool's name
	countLabel = "kubexm.test/count" // on the network: how many hosts the pool was made with
	hostLabel  = "kubexm.test/host"  // on containers: the host's number, counted from 1
	addrLabel  = "kubexm.test/addr"  // on containers: the host's address

	maxHosts       = 200
	cleanupTimeout = time.Minute
)

// ErrExists is what Start returns when a pool of that name is there.
var ErrExists = errors.New("pool exists")

// ErrNotFound is what Open and Find return when there is no pool or host of that name.
var ErrNotFound = errors.New("not found")

// Options say what Start makes.
type Options struct {
	// Name of the pool: lower-case letters, digits and dashes, at most 40. Hosts are
	// called <Name>-1, <Name>-2, … and everything is labelled kubexm.test/pool=<Name>.
	Name string
	// Count of hosts, from 1 to 200.
	Count int
	// System is the operating system of the hosts, where Image is not given; Debian by default.
	System System
	// Image is a Docker image to take instead of the one that EnsureImage makes.
	Image string
	// Subnet of the pool's network, IPv4, /24 or larger; host i has the address .10+i in
	// it. By default one that is free in 10.77.0.0/16, never 10.77.0.0/24.
	Subnet netip.Prefix
	// DualStack gives the network an IPv6 subnet too, and each host an address and a
	// default route in it; see Pool.Subnet6.
	DualStack bool
	// Offline leaves the hosts nothing to reach but the machine and each other. They have a default route, as Kubernetes wants it
	// (a packet to a Service needs one before it is sent elsewhere), but nothing comes through there; a restart loses it.
	Offline bool
	// Dir, when given, receives the pool's files (see Pool.Write). A key that lies
	// there is used again.
	Dir string
	// AuthorizedKeys may log in as every account, besides the pool's own key.
	AuthorizedKeys []ssh.PublicKey
	// SudoPassword is set for the account sudopw; without one its sudo is of no use.
	SudoPassword string
	// Log receives progress, for example testing.T.Logf; by default nobody does.
	Log func(format string, args ...any)
}

// Pool is a group of test hosts on one network.
type Pool struct {
	Name   string
	Subnet netip.Prefix
	// Subnet6 is the IPv6 subnet of a dual stack pool, a /64 of unique local addresses
	// that follows from Subnet; else it is the zero value. Host i has ::10+i in it.
	Subnet6 netip.Prefix
	Hosts   []*Host
	// Dir holds the pool's files, or is empty.
	Dir string

	// image and keys are what Start made the hosts of, and who may log in there.
	image string
	keys  []ssh.PublicKey
}

var validName = regexp.MustCompile(`^[a-z0-9]([a-z0-9-]{0,38}[a-z0-9])?$`)

func (o *Options) validate() error {
	if !validName.MatchString(o.Name) {
		return fmt.Errorf("name %q: want 1 to 40 lower-case letters, digits and inner dashes", o.Name)
	}
	if o.Count < 1 || o.Count > maxHosts {
		return fmt.Errorf("count %d: want 1 to %d", o.Count, maxHosts)
	}
	if o.Subnet.IsValid() && (!o.Subnet.Addr().Is4() || o.Subnet.Bits() > 24) {
		return fmt.Errorf("subnet %s: want an IPv4 prefix of 24 bits or less", o.Subnet)
	}
	return nil
}

// Start makes a pool and returns when every host is ready. On failure nothing of
// it stays; the error names the host and what kept it from becoming ready.
// A pool that exists is ErrExists.
func Start(ctx context.Context, options Options) (*Pool, error) {
	if err := options.validate(); err != nil {
		return nil, fmt.Errorf("test hosts: %w", err)
	}
	log := options.Log
	if log == nil {
		log = func(string, ...any) {}
	}
	existing, err := findPool(ctx, options.Name)
	if err != nil {
		return nil, fmt.Errorf("test hosts: %w", err)
	}
	if existing != nil {
		return nil, fmt.Errorf("test hosts: %w: %q; stop it first", ErrExists, options.Name)
	}
	image := options.Image
	if image == "" {
		if image, err = EnsureImage(ctx, options.System, log); err != nil {
			return nil, fmt.Errorf("test hosts: %w", err)
		}
	}
	PrepareMachine(log)
	pool, err := start(ctx, options, image)
	if err != nil {
		err = errors.Join(err, Remove(context.WithoutCancel(ctx), options.Name))
		return nil, fmt.Errorf("start pool %q: %w", options.Name, err)
	}
	log("pool %s: %d hosts ready in %s", pool.Name, len(pool.Hosts), pool.Subnet)
	return pool, nil
}

func start(ctx context.Context, options Options, image string) (*Pool, error) {
	signer, err := poolKey(options.Dir)
	if err != nil {
		return nil, err
	}
	subnet, err := createNetwork(ctx, options)
	if err != nil {
		return nil, err
	}
	pool := &Pool{Name: options.Name, Subnet: subnet, Dir: options.Dir, image: image}
	if options.DualStack {
		pool.Subnet6 = subnet6(subnet)
	}
	pool.addHosts(options.Count)
	pool.keys = append([]ssh.PublicKey{signer.PublicKey()}, options.AuthorizedKeys...)
	err = pool.each(ctx, func(ctx context.Context, host *Host) error {
		if err := host.create(ctx, image); err != nil {
			return err
		}
		if err := host.WaitReady(ctx); err != nil {
			return err
		}
		if options.Offline {
			// Docker lets nothing pass from a network that is internal to others; whether it gives it a default route depends on its
			// version.
			if _, err := host.Exec(ctx, "ip", "route", "replace", "default", "via", subnet.Masked().Addr().Next().String()); err != nil {
				return err
			}
		}
		if options.SudoPassword != "" {
			if err := host.setPassword(ctx, SudoPW, options.SudoPassword); err != nil {
				return err
			}
		}
		return host.authorize(ctx, signer, pool.keys)
	})
	if err != nil {
		return nil, err
	}
	return pool, pool.Write()
}

// Reinstall makes a host of a pool that Start made anew, as writing an image to its disk does: nothing of what it was stays but its name
// and its address, and it has other host keys. It returns when the host is ready.
func (p *Pool) Reinstall(ctx context.Context, h *Host) error {
	if err := h.recreate(ctx, p.image, p.keys); err != nil {
		return fmt.Errorf("reinstall host %s: %w", h.Name, err)
	}
	return p.Write()
}

// Open returns the pool of that name, starting hosts that do not run (after a
// reboot of the machine) and waiting until all are ready. The pool's key is taken
// from dir, or made anew when it is not there (or dir is empty), and allowed to log
// in beside the keys that already may. A pool that is not there is ErrNotFound.
func Open(ctx context.Context, name, dir string) (*Pool, error) {
	pool, err := findPool(ctx, name)
	if err != nil {
		return nil, fmt.Errorf("test hosts: %w", err)
	}
	if pool == nil {
		return nil, fmt.Errorf("test hosts: pool %q: %w", name, ErrNotFound)
	}
	pool.Dir = dir
	signer, err := poolKey(dir)
	if err != nil {
		return nil, fmt.Errorf("test hosts: %w", err)
	}
	err = pool.each(ctx, func(ctx context.Context, host *Host) error {
		if err := host.Start(ctx); err != nil {
			return err
		}
		if err := host.WaitReady(ctx); err != nil {
			return err
		}
		return host.authorize(ctx, signer, []ssh.PublicKey{signer.PublicKey()})
	})
	if err != nil {
		return nil, fmt.Errorf("open pool %q: %w", name, err)
	}
	return pool, pool.Write()
}

// findPool returns the pool as Docker knows it, without keys, or nil when there is none.
func findPool(ctx context.Context, name string) (*Pool, error) {
	networks, err := docker(ctx, nil, "network", "ls", "--quiet", "--filter", "label="+poolLabel+"="+name)
	if err != nil {
		return nil, err
	}
	if networks == "" {
		return nil, nil
	}
	out, err := docker(ctx, nil, "network", "inspect", "--format",
		`{{index .Labels "`+countLabel+`"}} {{(index .IPAM.Config 0).Subnet}} {{len .IPAM.Config}}`, lines(networks)[0])
	if err != nil {
		return nil, err
	}
	var subnetText string
	var count, subnets int
	if _, err := fmt.Sscan(out, &count, &subnetText, &subnets); err != nil {
		return nil, fmt.Errorf("pool %q: its network is not one of ours: %w", name, err)
	}
	subnet, err := netip.ParsePrefix(subnetText)
	if err != nil {
		return nil, fmt.Errorf("pool %q: %w", name, err)
	}
	pool := &Pool{Name: name, Subnet: subnet}
	if subnets > 1 {
		pool.Subnet6 = subnet6(subnet)
	}
	numbers, err := docker(ctx, nil, "ps", "--all", "--filter", "label="+poolLabel+"="+name,
		"--filter", "label="+hostLabel, "--format", `{{.Label "`+hostLabel+`"}}`)
	if err != nil {
		return nil, err
	}
	there := map[string]bool{}
	for _, number := range lines(numbers) {
		there[number] = true
	}
	for i := range count {
		if !there[strconv.Itoa(i+1)] {
			return nil, fmt.Errorf("pool %q is incomplete: host %d of %d is not there; remove the pool and start it again", name, i+1, count)
		}
	}
	pool.addHosts(count)
	return pool, nil
}

// addHosts adds that many hosts to a pool that has none.
func (p *Pool) addHosts(count int) {
	for i := range count {
		host := newHost(p.Name, i+1, hostAddress(p.Subnet, i))
		if p.Subnet6.IsValid() {
			host.Address6 = hostAddress(p.Subnet6, i).String()
		}
		p.Hosts = append(p.Hosts, host)
	}
}

// each calls act for all hosts at once and returns the first error.
func (p *Pool) each(ctx context.Context, act func(context.Context, *Host) error) error {
	group, ctx := errgroup.WithContext(ctx)
	for _, host := range p.Hosts {
		group.Go(func() error {
			if err := act(ctx, host); err != nil {
				return fmt.Errorf("host %s: %w", host.Name, err)
			}
			return nil
		})
	}
	return group.Wait()
}

// Stop removes the pool's hosts with their disks, and its network. Files in Dir stay.
func (p *Pool) Stop(ctx context.Context) error { return Remove(ctx, p.Name) }

// Remove removes everything that is labelled as belonging to the pool, in whatever
// state it is, and gives up after a minute. A pool that is not there is no error.
func Remove(ctx context.Context, name string) error {
	ctx, cancel := context.WithTimeout(ctx, cleanupTimeout)
	defer cancel()
	for {
		left, err := removeOnce(ctx, name)
		if left == 0 && err == nil {
			return nil
		}
		// What the engine was still making, or was using, at the first look may go at the next.
		if ctx.Err() != nil || left == 0 || pause(ctx) != nil {
			return fmt.Errorf("remove pool %q: %w", name, errors.Join(err, ctx.Err()))
		}
	}
}

// removeOnce returns how many objects of the pool there were.
func removeOnce(ctx context.Context, name string) (left int, err error) {
	for _, kind := range []struct {
		list, remove []string
	}{
		{[]string{"ps", "--all", "--quiet", "--no-trunc"}, []string{"rm", "--force", "--volumes"}},
		{[]string{"volume", "ls", "--quiet"}, []string{"volume", "rm", "--force"}},
		{[]string{"network", "ls", "--quiet"}, []string{"network", "rm"}},
	} {
		out, err := docker(ctx, nil, append(kind.list, "--filter", "label="+poolLabel+"="+name)...)
		if err == nil && out != "" {
			left += len(lines(out))
			_, err = docker(ctx, nil, append(kind.remove, lines(out)...)...)
		}
		if err != nil {
			return left, err
		}
	}
	return left, nil
}

func objectName(pool string) string { return "kubexm-" + pool }
