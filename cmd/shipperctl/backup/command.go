// SPDX-License-Identifier: Apache-2.0

// Package backup has `shipperctl backup`: it writes the objects of users in a management cluster into a file, and restores them.
package backup

import (
	"bufio"
	"errors"
	"fmt"
	"io"
	"slices"
	"strings"

	"github.com/spf13/cobra"
	appsv1 "k8s.io/api/apps/v1"
	coordinationv1 "k8s.io/api/coordination/v1"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/utils/clock"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"shipper.dev/shipper/cmd/shipperctl/cli"
	"shipper.dev/shipper/cmd/shipperctl/screen"
)

type options struct {
	cli.Flags
	inCluster bool
	file      string
	format    cli.Format
	verbose   bool
}

// NewCommand returns `backup` with its sub-commands, which ask c for the time.
func NewCommand(c clock.PassiveClock) *cobra.Command {
	o := &options{}
	cmd := cli.Group("backup", "Back up the Applications of a management cluster, and restore them", newPrepare(o), newRestore(o, c))
	flags := cmd.PersistentFlags()
	o.Register(flags)
	flags.BoolVar(&o.inCluster, "use-in-cluster-config", false,
		"use the account of the Pod that this runs in, and no kubeconfig")
	flags.StringVarP(&o.file, "file", "f", "backup.yaml", "path of the backup")
	flags.StringVar((*string)(&o.format), "format", string(cli.YAML), "how the backup is written or shown: yaml or json")
	flags.BoolVarP(&o.verbose, "verbose", "v", false, "print a line for every object")
	return cmd
}

// check refuses a --format that is none.
func (o *options) check() error {
	if o.format != cli.YAML && o.format != cli.JSON {
		return cli.WithCode(cli.Misused, fmt.Errorf("--format is %q: it must be %s or %s", o.format, cli.YAML, cli.JSON))
	}
	return nil
}

func newPrepare(o *options) *cobra.Command {
	var s selection
	cmd := &cobra.Command{
		Use:   "prepare",
		Short: "Write Applications with their Releases, targets and content, Checks, Notifications, Envelopes and Strategies into a file",
		Args:  cobra.NoArgs,
		RunE: func(cmd *cobra.Command, _ []string) error {
			if err := o.check(); err != nil {
				return err
			}
			c, err := o.client()
			if err != nil {
				return err
			}
			s.namespace = o.Namespace
			return advise(o.prepare(cmd, c, s))
		},
	}
	flags := cmd.Flags()
	flags.BoolVar(&s.blocks, "include-rollout-blocks", false, "RolloutBlocks too")
	flags.BoolVar(&s.clusters, "include-clusters", false,
		"Clusters too, with their Secrets and the identity of this management cluster; the file then has credentials")
	flags.BoolVar(&s.charts, "include-charts", false,
		"also the charts of Releases, so that a restore needs no chart repository")
	flags.BoolVar(&s.secrets, "include-secrets", false,
		"also the Secrets that Releases with resources have placed; the file then has credentials")
	return cmd
}

func (o *options) prepare(cmd *cobra.Command, c client.Client, s selection) error {
	f, err := read(cmd.Context(), c, s)
	if err != nil {
		return err
	}
	b, notes := collect(f)
	text, err := b.Marshal(o.format)
	if err != nil {
		return err
	}
	if o.verbose {
		b.overview(cmd.OutOrStdout())
	}
	for _, note := range notes {
		fmt.Fprintln(cmd.ErrOrStderr(), "Note:", note)
	}
	if err := writeFile(o.file, text); err != nil {
		return err
	}
	fmt.Fprintf(cmd.OutOrStdout(), "Backup objects stored in %q\n", o.file)
	return nil
}

func newRestore(o *options, now clock.PassiveClock) *cobra.Command {
	var yes bool
	cmd := &cobra.Command{
		Use:   "restore",
		Short: "Make again what a backup has and the management cluster has not, while Shipper is down",
		Args:  cobra.NoArgs,
		RunE: func(cmd *cobra.Command, _ []string) error {
			if err := o.check(); err != nil {
				return err
			}
			b, err := readFile(o.file)
			if err != nil {
				return err
			}
			c, err := o.client()
			if err != nil {
				return err
			}
			return advise(o.restore(cmd, c, b, now, yes))
		},
	}
	cmd.Flags().BoolVarP(&yes, "yes", "y", false, "restore without being asked")
	return cmd
}

func (o *options) restore(cmd *cobra.Command, c client.Client, b Backup, now clock.PassiveClock, yes bool) error {
	ctx := cmd.Context()
	if err := ready(ctx, c, b, o.Namespace, now.Now()); err != nil {
		return err
	}
	if !yes {
		agreed, err := o.agree(cmd, b)
		if err != nil || !agreed {
			return err
		}
		if err := ready(ctx, c, b, o.Namespace, now.Now()); err != nil { // people take their time
			return err
		}
	}
	r := &restorer{
		client: c, out: cmd.OutOrStdout(), verbose: o.verbose, namespaces: map[string]bool{},
		progress: cmd.ErrOrStderr(), clock: now, said: now.Now(),
	}
	err := r.restore(ctx, b)
	fmt.Fprintf(r.out, "%d objects were created, %d existed already\n", r.created, r.there)
	if err != nil {
		return fmt.Errorf("not everything was restored: %w", err)
	}
	b.printEnded(r.out, now.Now())
	return o.remind(ctx, c, r.out)
}

// agree shows the backup and asks whether to restore it.
func (o *options) agree(cmd *cobra.Command, b Backup) (bool, error) {
	out := cmd.OutOrStdout()
	a := prompter{in: bufio.NewReader(cmd.InOrStdin()), out: out}
	see, err := a.confirm("Would you like to see an overview of your backup?")
	if err != nil {
		return false, err
	}
	if see {
		b.overview(out)
	}
	review, err := a.confirm("Would you like to review backup?")
	if err != nil {
		return false, err
	}
	if review {
		text, err := b.redacted().Marshal(o.format)
		if err != nil {
			return false, err
		}
		fmt.Fprintf(out, "%s", text)
	}
	agreed, err := a.confirm("Would you like to restore backup?")
	if err == nil && !agreed {
		fmt.Fprintln(out, "Nothing was restored")
	}
	return agreed, err
}

func (o *options) client() (client.Client, error) {
	kinds := []func(*runtime.Scheme) error{appsv1.AddToScheme, coordinationv1.AddToScheme}
	if !o.inCluster {
		return o.ClientFor(kinds...)
	}
	config, err := cli.InCluster()
	if err != nil {
		return nil, err
	}
	return cli.NewClient(config, kinds...)
}

func (b Backup) overview(out io.Writer) {
	var rows [][]string
	for _, e := range b {
		for _, r := range e.Releases {
			rows = append(rows, []string{r.Release.GetNamespace(), r.Release.GetName(), e.Application.GetName()})
		}
	}
	fmt.Fprint(out, screen.Table(0, []string{"NAMESPACE", "RELEASE NAME", "OWNING APPLICATION"}, rows))
}

// hidden replaces the values of Secrets, and binary data, when a backup is shown.
const hidden = "(not shown)"

// redacted is a backup without secret values.
func (b Backup) redacted() Backup {
	out := make(Backup, len(b))
	for i, e := range b {
		if e.ClusterSecret != nil {
			e.ClusterSecret = redactedSecret(e.ClusterSecret)
		}
		e.ResourceSecrets = slices.Clone(e.ResourceSecrets)
		for n, secret := range e.ResourceSecrets {
			e.ResourceSecrets[n] = redactedSecret(secret)
		}
		e.ChartParts = slices.Clone(e.ChartParts)
		for n, part := range e.ChartParts {
			e.ChartParts[n] = part.DeepCopy()
			if spec, ok := e.ChartParts[n].Object["spec"].(map[string]any); ok {
				spec["data"] = hidden
			}
		}
		out[i] = e
	}
	return out
}

func redactedSecret(was *object) *object {
	secret := was.DeepCopy()
	for _, field := range []string{"data", "stringData"} {
		if values, ok := secret.Object[field].(map[string]any); ok {
			for key := range values {
				values[key] = hidden
			}
		}
	}
	return secret
}

// prompter asks questions on a terminal.
type prompter struct {
	in  *bufio.Reader
	out io.Writer
}

func (a prompter) confirm(question string) (bool, error) {
	for {
		fmt.Fprintf(a.out, "%s [y/n]: ", question)
		line, err := a.in.ReadString('\n')
		switch strings.ToLower(strings.TrimSpace(line)) {
		case "y", "yes":
			return true, nil
		case "n", "no":
			return false, nil
		}
		if errors.Is(err, io.EOF) {
			fmt.Fprintln(a.out)
			return false, errors.New("the input ended without an answer: give --yes to restore without questions; nothing was written")
		}
		if err != nil {
			return false, fmt.Errorf("reading the answer: %w", err)
		}
	}
}
