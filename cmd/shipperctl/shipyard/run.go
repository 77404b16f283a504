// SPDX-License-Identifier: Apache-2.0

package shipyard

import (
	"cmp"
	"errors"
	"fmt"
	"io"
	"os"
	"strconv"
	"strings"
	"time"

	"github.com/spf13/cobra"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/yaml"

	rules "shipper.dev/shipper/apis/rules/shipyard"
	shipper "shipper.dev/shipper/apis/shipper/v1alpha1"
	"shipper.dev/shipper/cmd/shipperctl/cli"
)

// starting are the flags of `shipyard run`.
type starting struct {
	stage, sequence, service, version string
	values                            []string
	file                              string
	retryOf, from                     string
	skipRequires                      string
	name                              string
	dryRun                            bool
	waiting
}

// waiting are the flags for waiting after a run is created.
type waiting struct {
	wait    bool
	timeout time.Duration
}

func (w *waiting) register(cmd *cobra.Command) {
	cmd.Flags().BoolVar(&w.wait, "wait", false, "wait until the run is finished, and exit as shipperctl shipyard wait does")
	cmd.Flags().DurationVar(&w.timeout, "timeout", 0, "how long to wait, with --wait; then it exits with 4 (default without end)")
}

func (w *waiting) check(cmd *cobra.Command) error {
	switch given := cmd.Flags().Changed("timeout"); {
	case given && !w.wait:
		return cli.WithCode(cli.Misused, errors.New("--timeout is for --wait: give --wait as well"))
	case given:
		return cli.CheckTimeout(w.timeout)
	}
	return nil
}

func newRun(o *options) *cobra.Command {
	s := &starting{}
	cmd := &cobra.Command{
		Use:   "run SHIPYARD",
		Short: "Start a sequence of a stage for a service",
		Long: "Start a sequence of a stage for a service: a SequenceRun is created, and its name printed. What is left out is the first\n" +
			"stage, the only sequence of the stage, and the only service of the Shipyard. It takes the verb promote on shipyards/STAGE, or on\n" +
			"shipyards. With --retry-of it repeats a finished run, of which everything else is taken.",
		Args: cobra.ExactArgs(1),
		RunE: func(cmd *cobra.Command, args []string) error {
			if err := s.check(cmd); err != nil {
				return err
			}
			c, namespace, err := o.Client()
			if err != nil {
				return err
			}
			data, err := s.data(cmd.InOrStdin())
			if err != nil {
				return err
			}
			run := s.object(keyOf(namespace, args[0], shipyardKinds), data)
			if s.dryRun {
				return rehearse(cmd, c, run)
			}
			return o.create(cmd, c, run, s.waiting)
		},
	}
	flags := cmd.Flags()
	flags.StringVar(&s.stage, "stage", "", "stage to run in (default the first)")
	flags.StringVar(&s.sequence, "sequence", "", "sequence of the stage (default the only one)")
	flags.StringVar(&s.service, "service", "", "service that is delivered (default the only one)")
	flags.StringVar(&s.version, "version", "", "version of its chart, or a constraint; it becomes data.deployment.version")
	flags.StringArrayVar(&s.values, "values", nil, "a value of the chart, as image.tag=v7, in data.configurationChange.values; give it again "+
		"for more. Whole numbers, true, false and null are what they say, all else is text")
	flags.StringVarP(&s.file, "data", "f", "", "file with the data of the run, YAML or JSON; - is standard input. --version and --values win")
	flags.StringVar(&s.retryOf, "retry-of", "", "finished run to repeat")
	flags.StringVar(&s.from, "from", "", "task to begin with, with --retry-of; test#2 is the second test (default the first)")
	flags.StringVar(&s.skipRequires, "skip-requires", "", "why the version need not have passed what the stage requires; it takes the verb "+
		"override on shipyards/STAGE, or on shipyards")
	flags.BoolVar(&s.dryRun, "dry-run", false, "say what the run would do: its tasks, the version and where; create nothing")
	flags.StringVar(&s.name, "name", "", "name of the run (default one that begins with the service, or the Shipyard)")
	s.register(cmd)
	return cmd
}

func newRetry(o *options) *cobra.Command {
	s := &starting{}
	cmd := &cobra.Command{
		Use:   "retry RUN",
		Short: "Repeat a finished run",
		Long: "Repeat a finished run by a new one, which has its Shipyard, data and version. With --from it begins with that task, and those\n" +
			"before it keep their results. A run that passed can be repeated with --from only.",
		Args: cobra.ExactArgs(1),
		RunE: func(cmd *cobra.Command, args []string) error {
			if err := s.waiting.check(cmd); err != nil {
				return err
			}
			c, old, err := o.readRun(cmd.Context(), args[0])
			if err != nil {
				return err
			}
			if !isFinished(old) {
				return fmt.Errorf("run %s is not finished: it is %s", old.Name, stateOf(old))
			}
			s.retryOf, s.service = old.Name, ""
			run := s.object(client.ObjectKey{Namespace: old.Namespace, Name: old.Spec.Shipyard}, nil)
			run.GenerateName = cmp.Or(old.Spec.Service, old.Spec.Shipyard) + "-"
			return o.create(cmd, c, run, s.waiting)
		},
	}
	cmd.Flags().StringVar(&s.from, "from", "", "task to begin with; test#2 is the second test (default the first)")
	s.register(cmd)
	return cmd
}

func (s *starting) check(cmd *cobra.Command) error {
	changed := cmd.Flags().Changed
	if changed("skip-requires") {
		if err := checkReason("skip-requires", s.skipRequires); err != nil {
			return err
		}
	}
	if changed("from") && s.retryOf == "" {
		return cli.WithCode(cli.Misused, errors.New("--from is for --retry-of: name the run to repeat"))
	}
	for _, flag := range []string{"stage", "sequence", "service", "version", "values", "data", "label"} {
		if s.retryOf != "" && changed(flag) {
			return cli.WithCode(cli.Misused, fmt.Errorf("--%s and --retry-of exclude each other: a retry has all of the run that it repeats", flag))
		}
	}
	if s.dryRun && s.wait {
		return cli.WithCode(cli.Misused, errors.New("--dry-run and --wait exclude each other: nothing is created"))
	}
	return s.waiting.check(cmd)
}

// object is the run that is created.
func (s *starting) object(shipyard client.ObjectKey, data shipper.FreeForm) *shipper.SequenceRun {
	run := &shipper.SequenceRun{
		ObjectMeta: metav1.ObjectMeta{Namespace: shipyard.Namespace, Name: s.name},
		Spec: shipper.SequenceRunSpec{
			Shipyard: shipyard.Name, Stage: s.stage, Sequence: s.sequence, Service: s.service, Data: data,
		},
	}
	if s.name == "" {
		run.GenerateName = cmp.Or(s.service, shipyard.Name) + "-"
	}
	if s.retryOf != "" {
		run.Spec.RetryOf = &shipper.RetryOf{Run: keyOf("", s.retryOf, runKinds).Name, From: s.from}
	}
	if s.skipRequires != "" {
		run.Spec.SkipRequires = &shipper.SkipRequires{Reason: s.skipRequires}
	}
	return run
}

// data are those of the file, with the version and the values of the flags.
func (s *starting) data(in io.Reader) (shipper.FreeForm, error) {
	var out shipper.FreeForm
	if s.file != "" {
		raw, err := readBounded(in, s.file)
		if err != nil {
			return nil, err
		}
		if err := yaml.UnmarshalStrict(raw, &out); err != nil {
			return nil, fmt.Errorf("reading %s: it has to be an object: %w", s.file, err)
		}
	}
	put := func(value any, path ...string) error {
		if out == nil {
			out = shipper.FreeForm{}
		}
		return set(out, value, path)
	}
	if s.version != "" {
		if err := put(s.version, rules.TaskDeployment, "version"); err != nil {
			return nil, cli.WithCode(cli.Misused, fmt.Errorf("--version: %w", err))
		}
	}
	for _, one := range s.values {
		path, value, found := strings.Cut(one, "=")
		if !found || path == "" {
			return nil, cli.WithCode(cli.Misused, fmt.Errorf("--values: %q is not KEY=VALUE", one))
		}
		if err := put(valueOf(value), append([]string{"configurationChange", "values"}, keys(path)...)...); err != nil {
			return nil, cli.WithCode(cli.Misused, fmt.Errorf("--values %s: %w", one, err))
		}
	}
	return out, nil
}

// readBounded reads a file, of at most the size that the data of a run has, twice over: YAML has comments.
func readBounded(in io.Reader, file string) ([]byte, error) {
	const most = 2 * rules.MaxData
	if file != "-" {
		opened, err := os.Open(file)
		if err != nil {
			return nil, fmt.Errorf("reading the data: %w", err)
		}
		defer opened.Close()
		in = opened
	}
	raw, err := io.ReadAll(io.LimitReader(in, most+1))
	switch {
	case err != nil:
		return nil, fmt.Errorf("reading the data: %w", err)
	case len(raw) > most:
		return nil, fmt.Errorf("%s is too large: a run has %d KiB of data; put it into a store and pass its URL", file, rules.MaxData>>10)
	}
	return raw, nil
}

// keys are the parts of a path with dots; \. is a dot in a key.
func keys(path string) []string {
	const dot = "\x00"
	parts := strings.Split(strings.ReplaceAll(path, `\.`, dot), ".")
	for i := range parts {
		parts[i] = strings.ReplaceAll(parts[i], dot, ".")
	}
	return parts
}

// valueOf reads a value as Helm's --set does: versions such as 1.10 stay text.
func valueOf(text string) any {
	switch text {
	case "true":
		return true
	case "false":
		return false
	case "null":
		return nil
	}
	if n, err := strconv.ParseInt(text, 10, 64); err == nil && (text == "0" || text[0] != '0' && text[0] != '+') {
		return n
	}
	return text
}

// set sets a value in nested objects, which it makes.
func set(in map[string]any, value any, path []string) error {
	if path[0] == "" {
		return errors.New("a key is empty")
	}
	if len(path) == 1 {
		in[path[0]] = value
		return nil
	}
	below, is := in[path[0]].(map[string]any)
	if old, there := in[path[0]]; there && !is && old != nil {
		return fmt.Errorf("%s is not an object", path[0])
	}
	if below == nil {
		below = map[string]any{}
		in[path[0]] = below
	}
	return set(below, value, path[1:])
}

// create creates a run, prints its name, and waits for its end with --wait.
func (o *options) create(cmd *cobra.Command, c client.WithWatch, run *shipper.SequenceRun, w waiting) error {
	if err := c.Create(cmd.Context(), run); err != nil {
		return fmt.Errorf("starting a run of shipyard %s/%s: %w", run.Namespace, run.Spec.Shipyard, err)
	}
	fmt.Fprintln(cmd.OutOrStdout(), run.Name) // alone, for scripts
	fmt.Fprintln(cmd.ErrOrStderr(), "run "+started(run))
	if !w.wait {
		return nil
	}
	s := &show{options: o, client: c, out: cmd.OutOrStdout(), key: client.ObjectKeyFromObject(run)}
	return s.await(cmd.Context(), w.timeout, false)
}

// rehearse has the API server admit a run and store nothing. Its warnings say what the run would do.
func rehearse(cmd *cobra.Command, c client.Client, run *shipper.SequenceRun) error {
	if err := c.Create(cmd.Context(), run, client.DryRunAll); err != nil {
		return fmt.Errorf("a run of shipyard %s/%s is refused: %w", run.Namespace, run.Spec.Shipyard, err)
	}
	fmt.Fprintln(cmd.ErrOrStderr(), "run "+described(run, "would be created"))
	return nil
}

// started describes a run that was created.
func started(run *shipper.SequenceRun) string { return described(run, "is created") }

// described says what a run is of.
func described(run *shipper.SequenceRun, how string) string {
	parts := []string{fmt.Sprintf("%s/%s %s", run.Namespace, run.Name, how)}
	for _, one := range []struct{ what, value string }{
		{"stage", run.Spec.Stage}, {"sequence", run.Spec.Sequence}, {"service", run.Spec.Service},
	} {
		if one.value != "" {
			parts = append(parts, one.what+" "+one.value)
		}
	}
	return strings.Join(parts, ", ")
}
