// SPDX-License-Identifier: Apache-2.0

package check

import (
	"cmp"
	"context"
	"fmt"
	"maps"
	"slices"
	"strings"
	"time"

	"github.com/spf13/cobra"
	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/apimachinery/pkg/api/meta"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"shipper.dev/shipper/apis/rules/check"
	"shipper.dev/shipper/apis/rules/position"
	"shipper.dev/shipper/apis/rules/stamp"
	"shipper.dev/shipper/apis/rules/strategy"
	shipper "shipper.dev/shipper/apis/shipper/v1alpha1"
	"shipper.dev/shipper/cmd/shipperctl/cli"
	"shipper.dev/shipper/cmd/shipperctl/screen"
	"shipper.dev/shipper/reconciler/check/measurement"
)

// wanted are the flags of `check try`.
type wanted struct {
	app      string
	clusters []string
	args     map[string]string
	address  string
	system   string
	verbose  bool
}

func newTry(o *options) *cobra.Command {
	var w wanted
	cmd := &cobra.Command{
		Use:   "try CHECK --app APPLICATION",
		Short: "Measure a Check once, now, for the newest release of an application, and print the values and the verdict",
		Long: "Measure a Check once, now, for the newest release of an application, and print the values and the verdict. CHECK is the\n" +
			"name of one, or shipper-checks/NAME of one that all namespaces share. Your machine asks the server, with your rights, and\n" +
			"nothing is written. Arguments are those of the step that names the Check. Tests and Jobs are printed, and not run. It exits\n" +
			"with 0 when the measurement is good everywhere, with 5 when it is not in some cluster, and with 1 when it gave no value.",
		Args: cobra.ExactArgs(1),
		RunE: func(cmd *cobra.Command, args []string) error {
			if w.address != "" {
				if err := checkAddress(w.address); err != nil {
					return cli.WithCode(cli.Misused, err)
				}
			}
			c, err := o.ClientFor(shipper.AddToScheme, corev1.AddToScheme)
			if err != nil {
				return err
			}
			_, namespace, err := o.Client()
			if err != nil {
				return err
			}
			return o.try(cmd, c, cli.ApplicationKey(namespace, w.app), args[0], w)
		},
	}
	flags := cmd.Flags()
	flags.StringVar(&w.app, "app", "", "the application (required)")
	flags.StringSliceVar(&w.clusters, "clusters", nil, "only in these clusters, separated by commas (default all of the release)")
	flags.StringToStringVar(&w.args, "args", nil, "values for arguments, in place of those of the step: k=v, separated by commas")
	flags.StringVar(&w.address, "address", "",
		"URL of the server to ask instead, without credentials, as http://localhost:9090 after \"kubectl port-forward\"")
	flags.StringVar(&w.system, "system-namespace", shipper.SystemNamespace,
		"namespace Shipper runs in, where the credentials for the metrics of clusters are")
	flags.BoolVarP(&w.verbose, "verbose", "v", false, "print the arguments, and the queries or the URL as they are sent")
	_ = cmd.MarkFlagRequired("app") // there is such a flag
	return cmd
}

// attempt is one measurement of a Check for a Release.
type attempt struct {
	wanted
	client client.Reader
	now    time.Time
	check  *shipper.Check
	// target and run are what the reconciler would measure by.
	target *shipper.CheckTarget
	run    *shipper.CheckRun
}

func (o *options) try(cmd *cobra.Command, c client.Reader, app client.ObjectKey, name string, w wanted) error {
	ctx := cmd.Context()
	a := &attempt{wanted: w, client: c, now: o.clock.Now()}
	if err := a.read(ctx, app, name, o.shared); err != nil {
		return err
	}
	if check.Once(&a.run.Check) {
		once, err := a.once(ctx)
		if err != nil {
			return err
		}
		return o.format.Print(cmd.OutOrStdout(), once, func(int) string { return once.text() })
	}
	done := a.measure(ctx)
	if err := ctx.Err(); err != nil {
		return err
	}
	if err := o.format.Print(cmd.OutOrStdout(), done, func(width int) string { return done.text(width, w.verbose) }); err != nil {
		return err
	}
	return done.err()
}

// read reads the Check, and plans its measurement for the newest Release of an Application.
func (a *attempt) read(ctx context.Context, app client.ObjectKey, name, shared string) error {
	key, err := check.KeyOf(name, app.Namespace, shared)
	if err != nil {
		return cli.WithCode(cli.Misused, fmt.Errorf("check %s: %w", name, err))
	}
	a.check = &shipper.Check{}
	if err := a.client.Get(ctx, key, a.check); err != nil {
		return fmt.Errorf("reading check %s: %w", key, err)
	}
	_, rels, err := cli.ReadApplication(ctx, a.client, app)
	if err != nil {
		return err
	}
	if len(rels) == 0 {
		return fmt.Errorf("application %s has no release yet: `shipperctl rollout status` says why", app)
	}
	if err := a.plan(rels, key, shared); err != nil {
		return err
	}
	if err := a.choose(); err != nil {
		return err
	}
	was := &shipper.CheckTarget{}
	err = a.client.Get(ctx, client.ObjectKeyFromObject(a.target), was)
	switch {
	case err == nil && check.Current(was, rels[len(rels)-1]):
		a.target.Spec.StartTime = was.Spec.StartTime
	case err != nil && !apierrors.IsNotFound(err) && !apierrors.IsForbidden(err) && !meta.IsNoMatchError(err):
		return fmt.Errorf("reading check target %s: %w", client.ObjectKeyFromObject(a.target), err)
	}
	return nil
}

// plan makes what the reconciler would: rels are the Application's, oldest first. It is pure.
func (a *attempt) plan(rels []*shipper.Release, key client.ObjectKey, shared string) error {
	rel := rels[len(rels)-1]
	step, use := useOf(rel, key, shared)
	given := maps.Clone(use.Args)
	if given == nil {
		given = map[string]string{}
	}
	maps.Copy(given, a.args)
	values, wrong := check.Resolve(a.check.Spec.Args, given)
	if len(wrong) > 0 {
		return cli.WithCode(cli.Misused, fmt.Errorf("argument %w: give it by --args", wrong[0]))
	}
	started := rel.CreationTimestamp
	if p := rel.Status.Progress; p != nil && p.Step == rel.Spec.TargetStep && p.ConvergedTime != nil {
		started = *p.ConvergedTime
	}
	a.target = &shipper.CheckTarget{
		ObjectMeta: metav1.ObjectMeta{
			Namespace: rel.Namespace, Name: rel.Name, Labels: map[string]string{shipper.AppLabel: rel.Labels[shipper.AppLabel]},
		},
		Spec: shipper.CheckTargetSpec{
			Step: step, StartTime: started, Clusters: slices.Sorted(slices.Values(stamp.Clusters(rel))),
		},
	}
	if i := slices.Index(strategy.Roles(rels), strategy.Incumbent); i >= 0 {
		a.target.Spec.Incumbent = rels[i].Name
	}
	a.run = &shipper.CheckRun{Name: use.NameInStep(), From: key.String(), Args: values, DryRun: use.DryRun, Check: a.check.Spec}
	return nil
}

// useOf is where a Release's strategy names a Check: at the requested step, or else at the first one that does. If none does, it is as if
// the requested step did, without arguments.
func useOf(rel *shipper.Release, key client.ObjectKey, shared string) (int32, shipper.StepCheck) {
	s := rel.Spec.Environment.Strategy
	is := func(c shipper.StepCheck) bool {
		named, err := check.KeyOf(c.Check, rel.Namespace, shared)
		return err == nil && named == key
	}
	steps := []int32{rel.Spec.TargetStep}
	for i := range s.LastStep() + 1 {
		steps = append(steps, i)
	}
	for _, step := range steps {
		for _, c := range s.ChecksIn(position.Of(rel).Wave, step) {
			if is(c) {
				return step, c
			}
		}
	}
	if all := s.AllChecks(); slices.ContainsFunc(all, is) { // of another wave
		return s.LastStep(), all[slices.IndexFunc(all, is)]
	}
	return rel.Spec.TargetStep, shipper.StepCheck{Check: key.Name}
}

// choose leaves the clusters that the user names, and refuses an address of one cluster for several.
func (a *attempt) choose() error {
	has := a.target.Spec.Clusters
	for _, name := range a.clusters {
		if !slices.Contains(has, name) {
			return cli.WithCode(cli.Misused, fmt.Errorf("release %s is not in cluster %s, only in: %s", a.target.Name, name,
				strings.Join(has, ", ")))
		}
	}
	if len(a.clusters) > 0 {
		a.target.Spec.Clusters = slices.Compact(slices.Sorted(slices.Values(a.clusters)))
	}
	switch ofClusters := a.run.Check.Prometheus != nil && a.run.Check.Prometheus.Address == ""; {
	case len(a.target.Spec.Clusters) == 0:
		return fmt.Errorf("release %s is placed on no cluster yet: `shipperctl rollout status` says why", a.target.Name)
	case a.address != "" && ofClusters && len(a.target.Spec.Clusters) > 1:
		return cli.WithCode(cli.Misused, fmt.Errorf("--address is the server of one cluster: name it with --clusters, one of %s",
			strings.Join(has, ", ")))
	}
	if a.address != "" && a.run.Check.HTTP != nil {
		spec := *a.run.Check.HTTP
		spec.URL = onServer(spec.URL, a.address)
		a.run.Check.HTTP = &spec
	}
	return nil
}

// tried is what was measured, as `-o json` prints it.
type tried struct {
	Check     string `json:"check"`
	Release   string `json:"release"`
	Incumbent string `json:"incumbent,omitempty"`
	Step      int32  `json:"step"`
	// Results have one entry for each cluster, or one without a cluster for a check over the fleet.
	Results []result `json:"results"`
	// Sent is what was sent, by cluster.
	Sent []sent `json:"sent"`
}

// result is a verdict.
type result struct {
	Cluster string               `json:"cluster,omitempty"`
	Verdict shipper.CheckVerdict `json:"verdict"`
	Value   string               `json:"value,omitempty"`
	// Message says why it is not good.
	Message string `json:"message,omitempty"`
}

// sent is what was sent in a cluster.
type sent struct {
	Cluster   string            `json:"cluster"`
	Arguments map[string]string `json:"arguments"`
	// Queries are those of Prometheus, URL that of an http request.
	Queries map[string]string `json:"queries,omitempty"`
	URL     string            `json:"url,omitempty"`
}

// measure measures in each cluster, and judges.
func (a *attempt) measure(ctx context.Context) *tried {
	out := &tried{
		Check: a.run.From, Release: a.target.Name, Incumbent: a.target.Spec.Incumbent, Step: a.target.Spec.Step,
		Results: []result{}, Sent: []sent{},
	}
	if a.target.Spec.Incumbent == "" && check.Compares(&a.run.Check) {
		for _, cluster := range check.JudgedIn(&a.target.Spec, a.run) {
			out.Results = append(out.Results, result{Cluster: cluster, Verdict: shipper.VerdictPassed, Message: check.NothingToCompare})
		}
		return out
	}
	measurer, fleet := measurement.New(), a.run.Check.Over == shipper.OverFleet
	judge := func(cluster string, values []measurement.Values) {
		m := measurer.Judge(ctx, &a.run.Check, a.run.Args, values, a.now)
		out.Results = append(out.Results, result{cluster, m.Verdict, m.Value, m.Message})
	}
	var all []measurement.Values
	for _, cluster := range a.target.Spec.Clusters {
		values, is, err := a.measureIn(ctx, measurer, cluster)
		out.Sent = append(out.Sent, is)
		switch {
		case err != nil && fleet:
			out.Results = append(out.Results, result{Verdict: shipper.VerdictError, Message: cluster + ": " + err.Error()})
			return out
		case err != nil:
			out.Results = append(out.Results, result{Cluster: cluster, Verdict: shipper.VerdictError, Message: err.Error()})
		case fleet:
			all = append(all, values)
		default:
			judge(cluster, []measurement.Values{values})
		}
	}
	if fleet {
		judge("", all)
	}
	return out
}

// measureIn measures in one cluster. An error means that there is no value.
func (a *attempt) measureIn(ctx context.Context, measurer *measurement.Measurer, name string) (measurement.Values, sent, error) {
	ctx, cancel := context.WithTimeout(ctx, check.Timeout(&a.run.Check))
	defer cancel()
	is, cluster := sent{Cluster: name}, &shipper.Cluster{}
	if err := a.client.Get(ctx, client.ObjectKey{Name: name}, cluster); err != nil {
		return measurement.Values{}, is, fmt.Errorf("reading Cluster %q: %w", name, err)
	}
	at := measurement.Input{Now: a.now, Args: check.Arguments(a.target, a.run, cluster, a.now)}
	is.Arguments = at.Args
	if err := a.server(ctx, cluster, &at); err != nil {
		return measurement.Values{}, is, err
	}
	is.fill(&a.run.Check, at)
	values, err := measurer.Measure(ctx, &a.run.Check, at)
	return values, is, err
}

// fill notes what is sent, as far as that can be said: the measurement has the errors.
func (s *sent) fill(spec *shipper.CheckSpec, at measurement.Input) {
	if spec.HTTP != nil {
		s.URL, _ = check.SubstituteURL(spec.HTTP.URL, at.Args)
		return
	}
	s.Queries = map[string]string{}
	for name, text := range spec.Prometheus.Queries {
		if query, err := measurement.Query(string(text), at); err == nil {
			s.Queries[name] = query
		}
	}
}

// err is an error unless the measurement is good everywhere.
func (t *tried) err() error {
	count := func(verdicts ...shipper.CheckVerdict) (n int) {
		for _, r := range t.Results {
			if slices.Contains(verdicts, r.Verdict) {
				n++
			}
		}
		return n
	}
	if n := count(shipper.VerdictFailed, shipper.VerdictInconclusive); n > 0 {
		return cli.WithCode(cli.NotPassed, fmt.Errorf("check %s did not pass: %d of %d measurements failed or have no verdict", t.Check, n,
			len(t.Results)))
	}
	if n := count(shipper.VerdictError); n > 0 {
		return fmt.Errorf("check %s could not be measured: %d of %d measurements gave no value", t.Check, n, len(t.Results))
	}
	return nil
}

// text is for people.
func (t *tried) text(width int, verbose bool) string {
	var out strings.Builder
	against := "no incumbent"
	if t.Incumbent != "" {
		against = "incumbent " + t.Incumbent
	}
	fmt.Fprintf(&out, "check %s of release %s, step %d, %s\n", t.Check, t.Release, t.Step, against)
	rows := make([][]string, 0, len(t.Results))
	for _, r := range t.Results {
		rows = append(rows, []string{cmp.Or(r.Cluster, "all clusters"), string(r.Verdict), cmp.Or(r.Value, "-"), r.Message})
	}
	out.WriteString(screen.Table(width, []string{"CLUSTER", "VERDICT", "VALUE", "WHY"}, rows))
	if !verbose {
		return out.String()
	}
	for _, s := range t.Sent {
		var args []string
		for _, name := range slices.Sorted(maps.Keys(s.Arguments)) {
			args = append(args, name+"="+s.Arguments[name])
		}
		fmt.Fprintf(&out, "%s: arguments %s\n", s.Cluster, strings.Join(args, " "))
		for _, name := range slices.Sorted(maps.Keys(s.Queries)) {
			fmt.Fprintf(&out, "%s: query %s: %s\n", s.Cluster, name, s.Queries[name])
		}
		if s.URL != "" {
			fmt.Fprintf(&out, "%s: URL %s\n", s.Cluster, s.URL)
		}
	}
	return out.String()
}
