// Copyright 2026 The cluster-api-provider-kubexm Authors.
// SPDX-License-Identifier: Apache-2.0

package cli

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"strings"

	"github.com/spf13/cobra"
	"sigs.k8s.io/yaml"

	"github.com/mensylisir/cluster-api-provider-kubexm/cmd/kubexm/internal/access"
	"github.com/mensylisir/cluster-api-provider-kubexm/cmd/kubexm/internal/clusterdir"
	"github.com/mensylisir/cluster-api-provider-kubexm/cmd/kubexm/internal/objects"
	"github.com/mensylisir/cluster-api-provider-kubexm/cmd/kubexm/internal/planner"
	"github.com/mensylisir/cluster-api-provider-kubexm/pkg/certificate/recovery"
	"github.com/mensylisir/cluster-api-provider-kubexm/pkg/host"
	"github.com/mensylisir/cluster-api-provider-kubexm/pkg/pki"
	"github.com/mensylisir/cluster-api-provider-kubexm/pkg/secret"
	"github.com/mensylisir/cluster-api-provider-kubexm/pkg/spec"
)

// recoverOptions are the flags of "certs recover".
type recoverOptions struct {
	source
	host    string
	replace []string
}

func (a *app) certsRecover() *cobra.Command {
	o := &recoverOptions{}
	cmd := &cobra.Command{
		Use:   "recover [CLUSTER] [-f config.yaml]",
		Short: "Read the cluster's key pairs back from its control plane hosts",
		Long: `Reads the key pairs of the certificate authorities (ca, etcd, proxy) and of service accounts (sa), and the key that Secrets are
encrypted with (encryption), from the cluster's control plane hosts, and writes those that are missing to the cluster's state. No host
is changed.

A pair counts only if its key belongs to its certificate, and if it has signed the certificates that the host uses. All hosts that
answer must have the same pairs, unless --host names one. One that does not answer, or has not all of the keys, is passed over with a
warning. A pair that is there already and differs is replaced only if --replace names it.`,
		Example: "  kubexm certs recover -f config.yaml\n  kubexm certs recover prod --host node1 --replace etcd",
		Args:    cobra.MaximumNArgs(1),
		RunE: func(cmd *cobra.Command, args []string) error {
			name, err := a.certsCluster(args, o.file)
			if err != nil {
				return err
			}
			return a.recoverAuthorities(cmd.Context(), o, name)
		},
	}
	flags := cmd.Flags()
	flags.StringVarP(&o.file, "file", "f", "", "the config file, where nothing else is left of the cluster's state, or hosts need a password")
	flags.StringVar(&o.host, "host", "", "the control plane host to read from (default: all, which must agree)")
	flags.StringSliceVar(&o.replace, "replace", nil, "pairs to replace in the state though they differ: "+strings.Join(pki.AllNames(), ", "))
	_ = cmd.MarkFlagFilename("file", "yaml", "yml") // the flag is there
	o.addKeyFlags(cmd)
	cmd.ValidArgsFunction = a.completeClusters
	return cmd
}

func (a *app) recoverAuthorities(ctx context.Context, o *recoverOptions, cluster string) error {
	for _, name := range o.replace {
		if !slices.Contains(pki.AllNames(), name) {
			return usage("--replace: %q is none of %s", name, strings.Join(pki.AllNames(), ", "))
		}
	}
	dir, err := clusterdir.Of(a.stateRoot, cluster)
	if err != nil {
		return usageError{err}
	}
	unlock, err := dir.Lock()
	if err != nil {
		return err
	}
	defer unlock()
	remembered, err := dir.Inventory()
	if err != nil {
		return err
	}
	from, err := a.recoverFrom(o, dir)
	if err != nil {
		return err
	}
	found, read, err := from.read(ctx)
	if err != nil {
		return err
	}
	defer a.warnUnread(from.unread)
	written, err := keepRecovered(dir, found, from.names, o.replace)
	if err != nil {
		return err
	}
	if from.externalEtcd {
		// It signs nothing here; what reads the state wants it whole.
		made, err := fillEtcd(dir)
		if err != nil {
			return err
		}
		written = append(written, made...)
	}
	if _, err := dir.Authorities(from.encrypted); err != nil {
		return err
	}
	if serial, err := dir.Serial(); err != nil {
		return err
	} else if serial == nil && remembered == nil { // nothing was left of the state: what is read back is no older copy
		if err := a.guard(dir, planner.Tools{Hosts: from.hosts, Owners: owners(dir, from.roles(), nil)}, false).Take(ctx); err != nil {
			return err
		}
	}
	if len(written) == 0 {
		a.note(fmt.Sprintf("%s has all its key pairs already; they are those of %s.", cluster, strings.Join(read, ", ")))
		return nil
	}
	a.note(fmt.Sprintf("%s: key pairs %s recovered from %s into %s.", cluster, strings.Join(written, ", "), strings.Join(read, ", "), dir.Path("secrets")))
	return nil
}

// recoverySource is where key pairs are read from.
type recoverySource struct {
	hosts *access.Hosts
	dial  func(ctx context.Context, name string) (host.Host, error)
	// from are the control plane hosts, and names the pairs that they have.
	from, names  []string
	externalEtcd bool
	// encrypted says that there must be an encryption key.
	encrypted bool
	// unread is why hosts were passed over.
	unread []error
}

// roles are those of the hosts that are read from.
func (r *recoverySource) roles() map[string]spec.Role {
	roles := make(map[string]spec.Role, len(r.from))
	for _, name := range r.from {
		roles[name] = spec.RoleControlPlane
	}
	return roles
}

// recoverFrom finds the control plane hosts, by the config file or by what is remembered.
func (a *app) recoverFrom(o *recoverOptions, dir clusterdir.Dir) (*recoverySource, error) {
	r := &recoverySource{names: pki.AllNames()}
	remembered, err := dir.Inventory()
	if err != nil {
		return nil, err
	}
	if o.file != "" {
		c, err := a.load(&o.source)
		if err != nil {
			return nil, err
		}
		if c.Name != dir.Cluster {
			return nil, usage("%s declares cluster %s, not %s", o.file, c.Name, dir.Cluster)
		}
		for i := range c.Hosts {
			if h := &c.Hosts[i]; h.Spec().Role == spec.RoleControlPlane {
				r.from = append(r.from, h.Name)
			}
		}
		r.externalEtcd = c.Spec.Etcd.IsExternal()
		r.encrypted = remembered == nil && c.Spec.Kubernetes.EncryptionAtRest.IsOn() // else it is remembered
		if r.hosts, err = access.New(c.Hosts, a.trusting(&o.source, dir)); err != nil {
			return nil, err
		}
	} else {
		known, hosts, err := a.reach(&o.source, dir)
		if err != nil {
			return nil, err
		}
		for _, h := range known.Hosts {
			if h.Role == spec.RoleControlPlane {
				r.from = append(r.from, h.Name)
			}
		}
		r.hosts, r.externalEtcd = hosts, known.EtcdSecret != ""
	}
	r.dial = r.hosts.Dial
	if o.host != "" {
		if !slices.Contains(r.from, o.host) {
			return nil, usage("--host: %s is none of the control plane hosts of %s: %s", o.host, dir.Cluster, strings.Join(r.from, ", "))
		}
		r.from = []string{o.host}
	}
	if r.externalEtcd {
		r.names = slices.DeleteFunc(r.names, func(name string) bool { return name == pki.EtcdName })
	}
	return r, nil
}

// read reads the pairs from all hosts that have them, and says which these are. Hosts that disagree with each other, or with themselves,
// are an error.
func (r *recoverySource) read(ctx context.Context) (found pki.Authorities, read []string, err error) {
	var first pki.Fingerprints
	for _, name := range r.from {
		pairs, err := r.readHost(ctx, name)
		var wrong *recovery.WrongError
		switch {
		case err != nil && ctx.Err() != nil:
			return found, nil, err
		case errors.As(err, &wrong) && len(r.from) > 1:
			return found, nil, fmt.Errorf("not all hosts have key pairs that can be right: %w. Correct those of this host, or read those of "+
				"one that has the right ones: kubexm certs recover --host", err)
		case err != nil:
			r.unread = append(r.unread, err)
			continue
		}
		prints, err := pairs.Fingerprints()
		if err != nil {
			return found, nil, err
		}
		if first != nil && prints.String() != first.String() {
			return found, nil, fmt.Errorf("the hosts do not have the same key pairs: %s has %s, and %s has %s. Name the one that is right: --host",
				read[0], first, name, prints)
		}
		if first == nil {
			first, found = prints, pairs
		}
		read = append(read, name)
	}
	if found.Encryption.IsZero() {
		r.names = slices.DeleteFunc(r.names, func(name string) bool { return name == pki.EncryptionName })
	}
	if len(read) == 0 {
		return found, nil, fmt.Errorf("no control plane host has the key pairs: %w", errors.Join(r.unread...))
	}
	return found, read, nil
}

func (r *recoverySource) readHost(ctx context.Context, name string) (pki.Authorities, error) {
	h, err := r.dial(ctx, name)
	if err != nil {
		return pki.Authorities{}, err
	}
	found, err := recovery.Read(ctx, h, r.names)
	return found, errors.Join(err, h.Close())
}

// warnUnread names the hosts whose pairs were not compared.
func (a *app) warnUnread(unread []error) {
	for _, err := range unread {
		a.warn(fmt.Sprintf("the key pairs of a host were not compared with the others': %v", err))
	}
}

// keepRecovered writes the pairs that are missing, or that replace names. Nothing is written if another one differs.
func keepRecovered(dir clusterdir.Dir, found pki.Authorities, names, replace []string) (written []string, err error) {
	there, _, err := dir.ReadAuthorities()
	if err != nil {
		return nil, err
	}
	now, err := found.Fingerprints()
	if err != nil {
		return nil, err
	}
	for _, name := range names {
		if slices.Contains(replace, name) {
			continue
		}
		was, err := halfOf(dir, name)
		if err != nil {
			return nil, fmt.Errorf("%w, and nothing was written: to take the pair of the hosts, add --replace %s", err, name)
		}
		if was != "" && was != now[name] {
			return nil, fmt.Errorf("the pair %s in %s (%s) is another one than the hosts have (%s), and nothing was written: "+
				"to take that of the hosts, add --replace %s", name, dir.Path("secrets"), was, now[name], name)
		}
	}
	for _, name := range names {
		pair, _ := found.Get(name)
		if known, _ := there.Get(name); string(known.Cert) == string(pair.Cert) && known.Key.Equal(pair.Key) {
			continue
		}
		if err := dir.WriteAuthority(name, pair); err != nil {
			return written, err
		}
		written = append(written, name)
	}
	return written, nil
}

// halfOf is the fingerprint of the pair that is in the state, or of what is left of it: "" if nothing is.
func halfOf(dir clusterdir.Dir, name string) (string, error) {
	identify := pki.KeyFingerprint
	if name == pki.EncryptionName {
		identify = pki.EncryptionFingerprint
	}
	cert, err := dir.Read("secrets", name+".crt")
	if err != nil {
		return "", err
	}
	if len(cert) > 0 {
		fingerprint, err := pki.Fingerprint(cert)
		if err != nil {
			return "", fmt.Errorf("%s: %w", dir.Path("secrets", name+".crt"), err)
		}
		return fingerprint, nil
	}
	key, err := dir.Read("secrets", name+".key")
	if err != nil || len(key) == 0 {
		return "", err
	}
	fingerprint, err := identify(secret.New(key))
	if err != nil {
		return "", fmt.Errorf("%s: %w", dir.Path("secrets", name+".key"), err)
	}
	return fingerprint, nil
}

// fillEtcd makes the pair of an etcd that is not run here, if it is missing.
func fillEtcd(dir clusterdir.Dir) ([]string, error) {
	there, _, err := dir.ReadAuthorities()
	if err != nil || !there.Etcd.IsZero() {
		return nil, err
	}
	made, err := pki.NewAuthorities(pki.CARequest{})
	if err != nil {
		return nil, err
	}
	return []string{pki.EtcdName}, dir.WriteAuthority(pki.EtcdName, made.Etcd)
}

func (a *app) certsSecrets() *cobra.Command {
	namespace := ""
	cmd := &cobra.Command{
		Use:   "secrets CLUSTER --namespace NAMESPACE",
		Short: "Print the cluster's key pairs as the Secrets of a management cluster",
		Long: `Prints the key pairs in the cluster's state as the Secrets that Cluster API knows them by: what "kubexm certs recover" has read from
hosts goes back to a management cluster that has lost it so. It prints private keys: give them to kubectl alone.`,
		Example: "  kubexm certs secrets prod --namespace fleet | kubectl apply -f -",
		Args:    cobra.ExactArgs(1),
		RunE: func(_ *cobra.Command, args []string) error {
			if namespace == "" {
				return usage("give the namespace of the Cluster in the management cluster: --namespace")
			}
			dir, err := clusterdir.Of(a.stateRoot, args[0])
			if err != nil {
				return usageError{err}
			}
			pairs, err := dir.Authorities(false) // and what is remembered
			if err != nil {
				return err
			}
			for _, s := range objects.AuthoritySecrets(namespace, args[0], pairs) {
				text, err := yaml.Marshal(s)
				if err != nil {
					return err
				}
				if _, err := fmt.Fprintf(a.Out, "---\n%s", text); err != nil {
					return err
				}
			}
			return nil
		},
	}
	cmd.Flags().StringVarP(&namespace, "namespace", "n", "", "the namespace of the Cluster in the management cluster")
	cmd.ValidArgsFunction = a.completeClusters
	return cmd
}
