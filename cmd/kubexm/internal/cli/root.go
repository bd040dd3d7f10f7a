// Copyright 2026 The cluster-api-provider-kubexm Authors.
// SPDX-License-Identifier: Apache-2.0

package cli

import (
	"context"
	"errors"
	"fmt"
	"math"
	"os"
	"strings"

	"github.com/spf13/cobra"

	"github.com/mensylisir/cluster-api-provider-kubexm/cmd/kubexm/internal/clusterdir"
	"github.com/mensylisir/cluster-api-provider-kubexm/cmd/kubexm/internal/openssh"
	"github.com/mensylisir/cluster-api-provider-kubexm/pkg/event"
	"github.com/mensylisir/cluster-api-provider-kubexm/pkg/event/audit"
	"github.com/mensylisir/cluster-api-provider-kubexm/pkg/host"
)

// verifyKeyVariable names the file for --bundle-verify-key, so that nobody forgets the flag.
const verifyKeyVariable = "KUBEXM_BUNDLE_VERIFY_KEY"

// formatJSON is the value of --log-format for programs.
const formatJSON = "json"

// app is what all commands share: the streams, and the flags that every command has.
type app struct {
	Streams
	built     string // the version that the program was built as, or ""
	stateRoot string
	quiet     bool
	logFormat string
	logFile   string
	// metricsAddr is where metrics are served while a command runs, metricsFile where they are written when it ends. "" is nowhere.
	metricsAddr, metricsFile string

	// log is the log file, nil without one, and logErr why something could not be written to it.
	log    *os.File
	logErr error
	// counted counts events for the metrics, nil if nobody wants to know; counting ends that.
	counted  event.Reader
	counting func() error

	// args is the command line, and act its record, nil if it changes nothing.
	args      []string
	act       *audit.Act
	bundleKey string // file with the keys that bundles must be signed by, or ""
	openSSH   openssh.Client
}

// Run runs a command line and returns the exit code. built is the version that the program was built as, or "".
func Run(ctx context.Context, args []string, s Streams, built string) int {
	a := &app{Streams: s, built: built, args: args, counting: func() error { return nil }}
	root := a.root()
	root.SetArgs(args)
	root.SetIn(s.In)
	root.SetOut(s.Out)
	root.SetErr(s.Err)
	err := root.ExecuteContext(ctx)
	if failed := a.counting(); failed != nil {
		err = errors.Join(err, failed)
	}
	code := exitCode(ctx, err)
	a.explain(err, code)
	if err := a.closeLog(); err != nil {
		a.log = nil
		a.explain(err, exitFailed)
		code = max(code, exitFailed)
	}
	return code
}

// explain says what went wrong.
func (a *app) explain(err error, code int) {
	var status exitStatus
	switch {
	case err == nil || errors.As(err, &status):
	case code == exitInterrupted:
		a.say(levelError, "Interrupted. Completed steps are kept; the next run resumes.")
	default:
		a.say(levelError, "Error: "+strings.TrimSpace(host.Text(err.Error(), math.MaxInt)))
	}
}

func (a *app) root() *cobra.Command {
	root := &cobra.Command{
		Use:   "kubexm",
		Short: "Bare Linux hosts to Kubernetes clusters, over SSH",
		Long: `kubexm turns bare Linux hosts into Kubernetes clusters over SSH, keeps them free of drift, and resets the hosts.

It keeps what it must know of a cluster in ./.kubexm/<cluster>.

` + exitCodes,
		Args:              cobra.ArbitraryArgs,
		RunE:              chooseCommand,
		SilenceUsage:      true,
		SilenceErrors:     true,
		DisableAutoGenTag: true,
	}
	flags := root.PersistentFlags()
	flags.StringVar(&a.stateRoot, "state-dir", clusterdir.Root, "directory that keeps the state of clusters")
	flags.BoolVarP(&a.quiet, "quiet", "q", false, "show failures alone")
	flags.StringVar(&a.logFormat, "log-format", "text", "how progress, notes and errors are reported: text, or json (an object per line, on standard error)")
	flags.StringVar(&a.logFile, "log-file", "", "write all events, notes and errors to this file too, a JSON object per line")
	flags.StringVar(&a.metricsAddr, "metrics-addr", "", "serve Prometheus metrics at this address while the command runs, e.g. 127.0.0.1:9090")
	flags.StringVar(&a.metricsFile, "metrics-file", "",
		"write Prometheus metrics to this file when the command ends, for the node exporter's textfile collector (*.prom)")
	flags.StringVar(&a.bundleKey, "bundle-verify-key", os.Getenv(verifyKeyVariable),
		"file with public SSH keys, one per line, one of which must have signed the bundle (default $"+verifyKeyVariable+")")
	root.PersistentPreRunE = func(*cobra.Command, []string) error {
		if a.logFormat != "text" && a.logFormat != formatJSON {
			return usage("--log-format: %q is none of text, json", a.logFormat)
		}
		return a.observe()
	}
	root.AddCommand(
		group("create", "Create or update a cluster", a.audited(a.createCluster())),
		group("upgrade", "Upgrade a cluster", a.audited(a.upgradeCluster())),
		group("delete", "Delete a cluster", a.audited(a.deleteCluster())),
		group("get", "List clusters, nodes or hosts", a.getClusters(), a.getNodes(), a.getHosts()),
		group("describe", "Show one thing with all that is known of it", a.describeCluster()),
		a.kubeconfig(), a.plan(), a.audited(a.apply()), a.audited(a.adoptCluster()), a.audited(a.recoverState()),
		group("bundle", "Make and check bundles of artifacts", a.bundleCreate(), a.bundleVerify(), a.bundleList()),
		group("certs", "Check, renew and recover certificates",
			a.certsCheck(), a.audited(a.certsRenew()), a.audited(a.certsRecover()), a.certsSecrets()),
		group("etcd", "Back up and restore etcd", a.audited(a.etcdBackup()),
			group("backups", "List backups of etcd", a.etcdBackupsList()), a.audited(a.etcdRestore())),
		group("run", "Run a command on hosts, or a management plane", a.audited(a.runCommand()), a.audited(a.runPlane())),
		a.audited(a.restart()),
		group("reset", "Reset hosts to their original state", a.audited(a.resetHost())),
		group("audit", "Show who changed what", a.auditList(), a.auditShow()),
		a.version(),
	)
	root.SetFlagErrorFunc(func(_ *cobra.Command, err error) error { return usageError{err} })
	strict(root)
	return root
}

// group is a verb whose commands are its objects.
func group(name, short string, commands ...*cobra.Command) *cobra.Command {
	g := &cobra.Command{Use: name, Short: short, Args: cobra.ArbitraryArgs, RunE: chooseCommand}
	g.AddCommand(commands...)
	return g
}

// chooseCommand is what a command that only has others does.
func chooseCommand(cmd *cobra.Command, args []string) error {
	if len(args) == 0 {
		if err := cmd.Help(); err != nil {
			return err
		}
		return usage("%s needs a command", cmd.CommandPath())
	}
	text := fmt.Sprintf("%s has no command %q", cmd.CommandPath(), args[0])
	cmd.SuggestionsMinimumDistance = 2
	if near := cmd.SuggestionsFor(args[0]); len(near) > 0 {
		text += "; did you mean " + strings.Join(near, " or ") + "?"
	}
	return usage("%s", text)
}

// strict makes every command's complaint about its arguments a usage error.
func strict(cmd *cobra.Command) {
	if check := cmd.Args; check != nil {
		cmd.Args = func(cmd *cobra.Command, args []string) error {
			if err := check(cmd, args); err != nil {
				return usage("%s: %w", cmd.CommandPath(), err)
			}
			return nil
		}
	}
	for _, c := range cmd.Commands() {
		strict(c)
	}
}

// observe opens where the command's events go beside the screen: --log-file and the metrics. What ends with an error before it has
// run anything is recorded there, too.
func (a *app) observe() (err error) {
	if a.logFile != "" {
		if a.log, err = os.OpenFile(a.logFile, os.O_WRONLY|os.O_APPEND|os.O_CREATE, 0o600); err != nil {
			return usage("--log-file: %w", err)
		}
	}
	return a.count()
}

// closeLog closes what observe has opened of the log, and says what it could not be written for.
func (a *app) closeLog() error {
	if a.log == nil {
		return nil
	}
	if err := errors.Join(a.logErr, a.log.Close()); err != nil {
		return fmt.Errorf("--log-file: %w", err)
	}
	return nil
}
