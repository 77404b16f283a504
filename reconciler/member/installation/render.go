// SPDX-License-Identifier: Apache-2.0

package installation

import (
	"context"
	"crypto/sha256"
	"encoding/hex"
	"encoding/json"
	"errors"
	"fmt"
	"runtime/debug"
	"time"

	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/log"

	"shipper.dev/shipper/apis/rules/override"
	shipper "shipper.dev/shipper/apis/shipper/v1alpha1"
	"shipper.dev/shipper/chart"
	"shipper.dev/shipper/chart/render"
	"shipper.dev/shipper/chart/repository"
	"shipper.dev/shipper/chart/values"
	"shipper.dev/shipper/reconciler/retry"
)

// Source is what a target's manifests are rendered from in a cluster.
type Source struct {
	Chart  shipper.Chart
	Digest string
	Values *shipper.ChartValues
	// Later is set, and Values nil, where ConfigMaps and Secrets hold some of the values: they are read when the chart is rendered.
	Later *Later `json:",omitempty"`
	// Overrides are what the Release changes in this cluster. The fingerprint has their digest.
	Overrides []override.Change `json:"-"`
}

// Later is how values are made of what ConfigMaps and Secrets held. It says all that decides what becomes of it.
type Later struct {
	Pinned values.Pinned
	Layers values.Layers
	Place  values.Place
}

// Values know what valuesFrom of a Release held. Errors are *chart.Error, or the API server's.
type Values interface {
	Of(ctx context.Context, pinned values.Pinned) (map[string]any, error)
}

// LoadTimeout is how long a pass of the reconciler waits for a chart that is not in memory.
const LoadTimeout = time.Second

// errLoading is why a pass ends that cannot wait longer for its chart.
var errLoading error = &problem{shipper.InProgress, retry.Retry, "the chart is being fetched"}

// Renderer renders a chart for one target in one cluster. Find finds what the chart looks up; nil finds nothing.
type Renderer interface {
	Render(ctx context.Context, s Source, t render.Target, find Find) (render.Manifest, error)
}

// Find finds an object of the target's namespace in a cluster; nil if there is none.
type Find func(context.Context, render.Query) (map[string]any, error)

// NewRenderer renders charts that a loader loads within a time: LoadTimeout in a reconciler, which makes another pass later.
func NewRenderer(charts repository.Loader, values Values, within time.Duration) Renderer {
	return chartRenderer{charts, values, within}
}

type chartRenderer struct {
	charts repository.Loader
	values Values
	within time.Duration
}

// Render loads and renders.
func (r chartRenderer) Render(ctx context.Context, s Source, t render.Target, find Find) (render.Manifest, error) {
	loaded, err := r.load(ctx, t.Namespace, s)
	if err != nil {
		return render.Manifest{}, err
	}
	if s.Later != nil {
		if s.Later.Layers.Base, err = r.values.Of(ctx, s.Later.Pinned); err != nil {
			return render.Manifest{}, err
		}
		if s.Values, err = s.Later.Layers.At(s.Later.Place); err != nil {
			return render.Manifest{}, err
		}
	}
	t.Overrides = s.Overrides
	return loaded.RenderIn(ctx, s.Values, t, find)
}

// load gives up when a chart is neither in memory nor on disk nor soon there: a slow repository must not keep a worker. The download goes
// on, and a later pass finds the chart.
func (r chartRenderer) load(ctx context.Context, namespace string, s Source) (*render.Chart, error) {
	bounded, cancel := context.WithTimeout(ctx, r.within)
	defer cancel()
	loaded, err := r.charts.Load(bounded, namespace, s.Chart, s.Digest)
	if err != nil && bounded.Err() != nil && ctx.Err() == nil {
		return nil, errLoading
	}
	return loaded, err
}

// source reads what a target is rendered from. Targets of older installations may leave the chart to their Release.
func (w *Worker) source(ctx context.Context, it *shipper.InstallationTarget) (sources, error) {
	out := sourcesOf(it)
	if out.Digest != "" && out.Chart.RepoURL != "" {
		return out, nil
	}
	var release shipper.Release
	err := w.client.Get(ctx, client.ObjectKeyFromObject(it), &release)
	switch {
	case apierrors.IsNotFound(err) && out.Chart.RepoURL != "":
		return out, nil
	case apierrors.IsNotFound(err) && it.Spec.Chart != nil:
		return out, broken("there is no Release %q, which has the archive of its chart", it.Name)
	case apierrors.IsNotFound(err):
		return out, broken("spec.chart is empty and there is no Release %q to take it from", it.Name)
	case err != nil:
		return out, fmt.Errorf("reading Release %s: %w", it.Name, err)
	}
	out.Digest = release.Annotations[shipper.ReleaseChartDigestAnnotation]
	if it.Spec.Chart == nil {
		out.values = values.LayersOf(&release.Spec.Environment)
	}
	if out.Chart.RepoURL == "" {
		out.Chart = release.Spec.Environment.Chart
	}
	return out, nil
}

// wanted is an object as it is to be written, and the digest of that.
type wanted struct {
	content *unstructured.Unstructured
	digest  string
	// given is the object as the chart rendered it by Application; nil where that is not known, and for copies. It is shared.
	given map[string]any
	// hook is set when it is run at a moment of the installation, and is no part of what is installed.
	hook *render.Hook
}

// inPlace reports whether it is a workload that is written at its step, and not by the installation.
func (w wanted) inPlace() bool {
	return w.content.GetAnnotations()[shipper.LotAnnotation] == shipper.LotInPlace
}

// rendering renders for one pass.
type rendering struct {
	renderer Renderer
	sources  sources
	// away is set when the cluster did not answer what the chart looks up.
	away bool
}

// render renders what the chart is in a cluster, with digests: first the objects to write, in order, then the hooks, in the order in which
// they are run.
func (r *rendering) render(ctx context.Context, source Source, t render.Target, find Find) ([]wanted, error) {
	if find != nil {
		find = r.watched(find)
	}
	return r.prepare(ctx, t, source.Later, func() (render.Manifest, error) { return r.renderer.Render(ctx, source, t, find) })
}

// prepare is what becomes of a manifest that was rendered. from are the values that were read for it; nil if none were.
func (r *rendering) prepare(
	ctx context.Context, t render.Target, from *Later, rendered func() (render.Manifest, error),
) (out []wanted, err error) {
	defer func() {
		if caught := recover(); caught != nil {
			out, err = nil, panicked(ctx, r.sources, caught)
		}
	}()
	var objects []render.Prepared
	manifest, err := rendered()
	if err == nil {
		objects, err = manifest.All(t)
	}
	if err != nil {
		err = ofChart(r.sources.discreet(err))
		var known *problem
		if r.away && errors.As(err, &known) {
			err = &problem{shipper.ClusterUnreachable, known.action, known.message}
		}
		return nil, err
	}
	wanted, err := want(objects)
	if err != nil && r.sources.private() {
		return nil, broken("what the chart renders to cannot be used%s", chart.Unsaid)
	}
	if err == nil && r.sources.private() {
		err = r.sources.keyed(wanted, from)
	}
	return wanted, err
}

// watched notes that something was found: what the chart renders to may then hold content of a Secret. And that nothing was answered.
func (r *rendering) watched(find Find) Find {
	return func(ctx context.Context, q render.Query) (map[string]any, error) {
		found, err := find(ctx, q)
		r.sources.found = r.sources.found || found != nil
		r.away = r.away || retry.Unanswered(err)
		return found, err
	}
}

// panicked is the error of a rendering that panicked. What the panic says may be secret, and is not logged then.
func panicked(ctx context.Context, from sources, caught any) error {
	if from.private() {
		caught = "what it says is withheld, for values are secret"
	}
	log.FromContext(ctx).Error(fmt.Errorf("panic: %v", caught), "Rendering a chart panicked", "stacktrace", string(debug.Stack()))
	return broken("rendering the chart panicked, the log of shipper-reconciler has the stack")
}

// fingerprint differs when anything differs that a manifest is rendered from.
func (s Source) fingerprint(t render.Target) (string, error) {
	from := []any{s, t}
	if len(s.Overrides) > 0 {
		from = append(from, override.Digest(s.Overrides))
	}
	return digest(from)
}

// want digests what is to be written.
func want(objects []render.Prepared) ([]wanted, error) {
	out := make([]wanted, 0, len(objects))
	for i := range objects {
		o := &objects[i].Object
		sum, err := digest(o.Object)
		if err != nil {
			return nil, broken("%s %q cannot be written as JSON: %v", o.GetKind(), o.GetName(), err)
		}
		hook, err := render.HookOf(o)
		if err != nil {
			return nil, broken("%s %q %v", o.GetKind(), o.GetName(), err)
		}
		w := wanted{content: o, digest: sum, hook: hook}
		if given := objects[i].Given; given != nil {
			w.given = given.Object
		}
		out = append(out, w)
	}
	return out, nil
}

// digest is the sha256 (hex) of anything's JSON.
func digest(v any) (string, error) {
	raw, err := json.Marshal(v)
	if err != nil {
		return "", fmt.Errorf("hashing: %w", err)
	}
	sum := sha256.Sum256(raw)
	return hex.EncodeToString(sum[:]), nil
}
