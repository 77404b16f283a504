// SPDX-License-Identifier: Apache-2.0

package render

import (
	"context"
	"errors"
	"fmt"
	"strings"
	"time"

	"github.com/spf13/cobra"
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/apimachinery/pkg/util/jsonmergepatch"
	"k8s.io/client-go/rest"
	"sigs.k8s.io/controller-runtime/pkg/client"

	shipper "shipper.dev/shipper/apis/shipper/v1alpha1"
	"shipper.dev/shipper/cmd/shipperctl/cli"
	"shipper.dev/shipper/cmd/shipperctl/screen"
)

// NewPlanCommand returns `plan`.
func NewPlanCommand() *cobra.Command {
	o := &cli.Flags{}
	var file string
	var format cli.Format
	cmd := &cobra.Command{
		Use:   "plan -f FILE",
		Short: "Show what would come of applying applications: release, chart, clusters, steps and blocks",
		Args:  cobra.NoArgs,
		RunE: func(cmd *cobra.Command, _ []string) error {
			heard := &warnings{}
			o.Warnings = heard
			c, namespace, err := o.Client()
			if err != nil {
				return err
			}
			apps, err := cli.ReadManifest(cmd.InOrStdin(), file, namespace)
			if err != nil {
				return err
			}
			out := make([]planned, 0, len(apps))
			var failed []error
			for _, app := range apps {
				_, err := dryRunApply(cmd.Context(), c, app)
				lacking := rightsNeeded(app, c.RESTMapper(), envelopesOf(cmd.Context(), c, app.GetNamespace()))
				this := outcomeOf(app.GetNamespace(), app.GetName(), append(heard.take(), lacking...), err)
				failed = append(failed, err, this.mightNotRollOut())
				out = append(out, this)
			}
			err = format.Print(cmd.OutOrStdout(), out, func(width int) string {
				var text strings.Builder
				for _, o := range out {
					text.WriteString(o.text(width))
				}
				return text.String()
			})
			return errors.Join(append(failed, err)...)
		},
	}
	o.RegisterDaily(cmd.PersistentFlags())
	cmd.Flags().StringVarP(&file, "file", "f", "", "the manifest, also as --filename; - is standard input (required)")
	_ = cmd.MarkFlagRequired("file") // there is such a flag
	format.Register(cmd.Flags())
	return cmd
}

// planned is the result of applying one Application, as `-o json` prints it.
type planned struct {
	Namespace   string `json:"namespace"`
	Application string `json:"application"`
	// Release is the one that would be made; empty when nothing would be rolled out, or when it has no name before its content is taken.
	Release string `json:"release,omitempty"`
	// Plan is the rollout, line by line, in words for people.
	Plan []string `json:"plan"`
	// Warnings are the API server's other warnings.
	Warnings []string `json:"warnings"`
	// Refused is the reason for a refusal; empty if there is none.
	Refused string `json:"refused,omitempty"`
}

// outcomeOf separates the plan of an Application from other warnings.
func outcomeOf(namespace, name string, said []string, err error) planned {
	out := planned{Namespace: namespace, Application: name, Plan: []string{}, Warnings: []string{}}
	if err != nil {
		out.Refused = err.Error()
	}
	for _, text := range said {
		line, isPlan := strings.CutPrefix(text, shipper.Planned)
		switch {
		case isPlan:
			if rest, is := strings.CutPrefix(text, shipper.PlannedRelease); is && out.Release == "" {
				out.Release, _, _ = strings.Cut(rest, " ")
			}
			out.Plan = append(out.Plan, line)
		case !strings.HasPrefix(text, shipper.MakesRelease): // the plan begins with that
			out.Warnings = append(out.Warnings, text)
		}
	}
	return out
}

// mightNotRollOut is an error if a warning says that the Application might not roll out.
func (o *planned) mightNotRollOut() error {
	for _, text := range o.Warnings {
		if strings.HasPrefix(text, shipper.MightNotRollOut) {
			return fmt.Errorf("application %s/%s might not roll out: its warnings say why", o.Namespace, o.Application)
		}
	}
	return nil
}

// text is for terminals of width columns; 0 is unbounded.
func (o *planned) text(width int) string {
	var out strings.Builder
	fmt.Fprintf(&out, "application %s/%s\n", o.Namespace, o.Application)
	for _, line := range o.Plan {
		mark := "    "
		for _, part := range screen.Wrap(line, max(width-2*len(mark), 0)) {
			out.WriteString(mark + part + "\n")
			mark = "      "
		}
	}
	if len(o.Plan) == 0 && o.Refused == "" {
		fmt.Fprintln(&out, "    nothing would be rolled out")
	}
	for _, line := range o.Warnings {
		out.WriteString(screen.Hang("  ! ", line, width))
	}
	return out.String()
}

// warnings collects the API server's warnings.
type warnings struct{ said []string }

var _ rest.WarningHandler = &warnings{}

// HandleWarningHeader keeps a warning.
func (w *warnings) HandleWarningHeader(_ int, _ string, text string) { w.said = append(w.said, text) }

// take returns the warnings since the last call.
func (w *warnings) take() []string {
	said := w.said
	w.said = nil
	return said
}

// fieldManager is the name under which shipperctl applies.
const fieldManager = "shipperctl"

// dryRunApply applies an Application in a dry run, through all admission checks, and returns the object that would be stored. It
// applies under the field manager of the last apply, so that fields missing from the manifest are removed.
func dryRunApply(ctx context.Context, c client.Client, app *unstructured.Unstructured) (*unstructured.Unstructured, error) {
	app = app.DeepCopy()
	refused := func(err error) error {
		if _, unknown, is := strings.Cut(err.Error(), "strict decoding error: "); is { // the rest repeats the whole patch
			err = cli.WithCode(cli.Refused, errors.New(unknown))
		}
		return fmt.Errorf("application %s/%s would be refused: %w", app.GetNamespace(), app.GetName(), err)
	}
	live := &unstructured.Unstructured{}
	live.SetGroupVersionKind(app.GroupVersionKind())
	if err := c.Get(ctx, client.ObjectKeyFromObject(app), live); client.IgnoreNotFound(err) != nil {
		return nil, fmt.Errorf("reading application %s/%s: %w", app.GetNamespace(), app.GetName(), err)
	}
	if last := live.GetAnnotations()[corev1.LastAppliedConfigAnnotation]; last != "" {
		patch, err := threeWay([]byte(last), app, live)
		if err != nil {
			return nil, refused(err)
		}
		strict := client.WithFieldValidation(c, client.FieldValidation(metav1.FieldValidationStrict))
		if err := strict.Patch(ctx, live, client.RawPatch(types.MergePatchType, patch), client.DryRunAll); err != nil {
			return nil, refused(err)
		}
		return live, nil
	}
	err := c.Apply(ctx, client.ApplyConfigurationFromUnstructured(app), client.DryRunAll, client.ForceOwnership,
		client.FieldOwner(applier(live)))
	if err != nil {
		return nil, refused(err)
	}
	return app, nil
}

// threeWay is the patch of `kubectl apply` without --server-side: what the manifest says, without what only the last one said.
func threeWay(last []byte, app, live *unstructured.Unstructured) ([]byte, error) {
	modified, err := app.MarshalJSON()
	if err != nil {
		return nil, err
	}
	current, err := live.MarshalJSON()
	if err != nil {
		return nil, err
	}
	return jsonmergepatch.CreateThreeWayJSONMergePatch(last, modified, current)
}

// applier is the field manager of the last server-side apply, by default shipperctl.
func applier(live *unstructured.Unstructured) string {
	name, at := fieldManager, time.Time{}
	for _, entry := range live.GetManagedFields() {
		if entry.Operation == metav1.ManagedFieldsOperationApply && entry.Subresource == "" && entry.Time != nil && !entry.Time.Time.Before(at) {
			name, at = entry.Manager, entry.Time.Time
		}
	}
	return name
}
