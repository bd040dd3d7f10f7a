// Copyright 2026 The cluster-api-provider-kubexm Authors.
// SPDX-License-Identifier: Apache-2.0

// Command testhosts starts, lists and removes pools of test hosts.
package main

import (
	"context"
	"errors"
	"fmt"
	"net/netip"
	"os"
	"os/exec"
	"os/signal"
	"path/filepath"
	"strings"
	"syscall"
	"text/tabwriter"

	"github.com/spf13/cobra"

	"github.com/mensylisir/cluster-api-provider-kubexm/test/hosts"
)

func main() {
	ctx, stop := signal.NotifyContext(context.Background(), os.Interrupt, syscall.SIGTERM)
	err := rootCommand().ExecuteContext(ctx)
	stop()
	var status exitStatus
	switch {
	case errors.As(err, &status):
		os.Exit(int(status))
	case err != nil:
		fmt.Fprintln(os.Stderr, "testhosts:", err)
		os.Exit(1)
	}
}

func rootCommand() *cobra.Command {
	root := &cobra.Command{
		Use:           "testhosts",
		Short:         "Real Linux hosts in containers, for tests and the quickstart",
		SilenceUsage:  true,
		SilenceErrors: true,
	}
	root.AddCommand(upCommand(), downCommand(), listCommand(), execCommand(), imageCommand())
	return root
}

// exitStatus is that of a command on a host, which has itself said what was wrong.
type exitStatus int

func (s exitStatus) Error() string { return fmt.Sprintf("exit status %d", int(s)) }

func upCommand() *cobra.Command {
	var options hosts.Options
	var subnet, passwordFile, system string
	cmd := &cobra.Command{
		Use:   "up",
		Short: "Start a pool, or find it running, and write the files that tell how to reach it",
		Args:  cobra.NoArgs,
		RunE: func(cmd *cobra.Command, _ []string) (err error) {
			options.Log = func(format string, args ...any) { fmt.Fprintf(cmd.ErrOrStderr(), format+"\n", args...) }
			options.System = hosts.System(system)
			if subnet != "" {
				if options.Subnet, err = netip.ParsePrefix(subnet); err != nil {
					return fmt.Errorf("--subnet: %w", err)
				}
			}
			if passwordFile != "" {
				content, err := os.ReadFile(passwordFile)
				if err != nil {
					return fmt.Errorf("--sudo-password-file: %w", err)
				}
				options.SudoPassword = strings.TrimRight(string(content), "\r\n")
			}
			pool, running, err := up(cmd.Context(), options)
			if err != nil {
				return err
			}
			if running {
				fmt.Fprintf(cmd.OutOrStdout(), "pool %s runs already\n", pool.Name)
			}
			for _, host := range pool.Hosts {
				fmt.Fprintln(cmd.OutOrStdout(), strings.TrimSpace(strings.Join([]string{host.Name, host.Address, host.Address6}, "\t")))
			}
			fmt.Fprintf(cmd.OutOrStdout(), "log in with: ssh -F %s %s\n", filepath.Join(pool.Dir, "ssh_config"), pool.Hosts[0].Name)
			return nil
		},
	}
	flags := cmd.Flags()
	flags.StringVar(&options.Name, "name", "", "name of the pool")
	flags.IntVar(&options.Count, "count", 1, "how many hosts")
	flags.StringVar(&options.Dir, "dir", "", "directory for the key, known_hosts, ssh_config and hosts.json (default .kubexm/testhosts/<name>)")
	flags.StringVar(&subnet, "subnet", "", "IPv4 subnet, /24 or larger; host i has address .10+i (default one that is free in 10.77.0.0/16)")
	flags.BoolVar(&options.DualStack, "dual-stack", false, "give the hosts IPv6 addresses too")
	flags.StringVar(&passwordFile, "sudo-password-file", "", "file with the password of the account sudopw")
	systemFlag(cmd, &system)
	mustHaveName(cmd)
	return cmd
}

// up starts the pool, or opens it when it is there with as many hosts as asked for.
func up(ctx context.Context, options hosts.Options) (pool *hosts.Pool, running bool, err error) {
	if options.Dir == "" {
		options.Dir = filepath.Join(".kubexm", "testhosts", options.Name)
	}
	pool, err = hosts.Open(ctx, options.Name, options.Dir)
	if errors.Is(err, hosts.ErrNotFound) {
		pool, err = hosts.Start(ctx, options)
		return pool, false, err
	}
	if err != nil {
		return nil, false, err
	}
	if len(pool.Hosts) != options.Count {
		return nil, false, fmt.Errorf("pool %s runs with %d hosts, not %d; remove it first: testhosts down --name %s",
			pool.Name, len(pool.Hosts), options.Count, pool.Name)
	}
	if options.DualStack != pool.Subnet6.IsValid() {
		return nil, false, fmt.Errorf("pool %s runs already, with other address families; remove it first: testhosts down --name %s", pool.Name, pool.Name)
	}
	if options.Subnet.IsValid() && pool.Subnet != options.Subnet.Masked() {
		return nil, false, fmt.Errorf("pool %s runs in %s, not %s; remove it first: testhosts down --name %s",
			pool.Name, pool.Subnet, options.Subnet, pool.Name)
	}
	return pool, true, nil
}

func downCommand() *cobra.Command {
	var name string
	cmd := &cobra.Command{
		Use:   "down",
		Short: "Remove a pool with everything on its hosts",
		Args:  cobra.NoArgs,
		RunE:  func(cmd *cobra.Command, _ []string) error { return hosts.Remove(cmd.Context(), name) },
	}
	cmd.Flags().StringVar(&name, "name", "", "name of the pool")
	mustHaveName(cmd)
	return cmd
}

func listCommand() *cobra.Command {
	return &cobra.Command{
		Use:   "ls",
		Short: "List all pools and their hosts",
		Args:  cobra.NoArgs,
		RunE: func(cmd *cobra.Command, _ []string) error {
			all, err := hosts.List(cmd.Context())
			if err != nil {
				return err
			}
			table := tabwriter.NewWriter(cmd.OutOrStdout(), 0, 8, 2, ' ', 0)
			fmt.Fprintln(table, "POOL\tHOST\tADDRESS\tSTATE")
			for _, entry := range all {
				fmt.Fprintf(table, "%s\t%s\t%s\t%s\n", entry.Pool, entry.Host, entry.Address, entry.State)
			}
			return table.Flush()
		},
	}
}

func execCommand() *cobra.Command {
	return &cobra.Command{
		Use:   "exec HOST -- COMMAND [ARGUMENT...]",
		Short: "Run a command on a host as root, through Docker",
		Args:  cobra.MinimumNArgs(2),
		RunE: func(cmd *cobra.Command, args []string) error {
			host, err := hosts.Find(cmd.Context(), args[0])
			if err != nil {
				return err
			}
			run := host.Command(cmd.Context(), args[1:]...)
			run.Stdin, run.Stdout, run.Stderr = cmd.InOrStdin(), cmd.OutOrStdout(), cmd.ErrOrStderr()
			err = run.Run()
			var exit *exec.ExitError
			if errors.As(err, &exit) && exit.Exited() {
				return exitStatus(exit.ExitCode())
			}
			return err
		},
	}
}

func imageCommand() *cobra.Command {
	var system string
	cmd := &cobra.Command{
		Use:   "image",
		Short: "Build or import the hosts' image unless Docker has it, and print its name",
		Args:  cobra.NoArgs,
		RunE: func(cmd *cobra.Command, _ []string) error {
			image, err := hosts.EnsureImage(cmd.Context(), hosts.System(system), func(format string, args ...any) {
				fmt.Fprintf(cmd.ErrOrStderr(), format+"\n", args...)
			})
			if err != nil {
				return err
			}
			fmt.Fprintln(cmd.OutOrStdout(), image)
			return nil
		},
	}
	systemFlag(cmd, &system)
	return cmd
}

func systemFlag(cmd *cobra.Command, system *string) {
	cmd.Flags().StringVar(system, "system", "", "operating system of hosts: Debian if empty, or rpm for a simulated one of the Red Hat family")
}

// mustHaveName makes --name mandatory; the flag is there, so this cannot fail.
func mustHaveName(cmd *cobra.Command) { _ = cmd.MarkFlagRequired("name") }
