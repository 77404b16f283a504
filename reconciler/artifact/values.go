// SPDX-License-Identifier: Apache-2.0

package artifact

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"strconv"

	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"shipper.dev/shipper/apis/rules/stamp"
	shipper "shipper.dev/shipper/apis/shipper/v1alpha1"
	"shipper.dev/shipper/chart/values"
)

// Values know what valuesFrom of Releases held. They are safe for concurrent use.
type Values struct {
	releases client.Reader
	reader   client.Reader
	writer   client.Writer
	// system is Shipper's own namespace, where nothing is read for charts; empty for none.
	system string
}

// NewValues returns Values that are kept by a client, which has Releases in its cache. reader reads ConfigMaps and Secrets, rarely, and
// must not keep them in memory. system is Shipper's own namespace: its Secrets are those of clusters, and are in no chart.
func NewValues(c client.Client, reader client.Reader, system string) *Values {
	return &Values{releases: c, reader: reader, writer: c, system: system}
}

// LocateValues returns Values that are only looked at, with whatever rights reader has.
func LocateValues(reader client.Reader) *Values { return &Values{releases: reader, reader: reader} }

// Of is what a Release has from its ConfigMaps and Secrets, merged. It comes from the Secret that keeps it or, until there is one, from
// that of another Release, and then from where it was. Errors are *chart.Error, or the API server's, and say nothing of what is held.
func (v *Values) Of(ctx context.Context, pinned values.Pinned) (map[string]any, error) {
	return v.of(ctx, pinned, v.writer != nil)
}

// Ahead is Of for a Release that is not there yet: nothing is kept for it.
func (v *Values) Ahead(ctx context.Context, pinned values.Pinned) (map[string]any, error) {
	return v.of(ctx, pinned, false)
}

func (v *Values) of(ctx context.Context, pinned values.Pinned, keep bool) (map[string]any, error) {
	if len(pinned.From) > 0 && pinned.Namespace == v.system {
		return nil, noValues(nil, "nothing in Shipper's own namespace %s is read for charts: move the Application to another namespace", v.system)
	}
	held, err := v.kept(ctx, pinned, pinned.Release)
	if err == nil && held == nil {
		if held, err = v.find(ctx, pinned); err == nil && keep {
			err = v.keep(ctx, pinned, held)
		}
	}
	if err != nil {
		return nil, err
	}
	return pinned.Merge(held)
}

// kept is what the Secret of a Release of the same values holds; nil when there is none, or it is not what it should be.
func (v *Values) kept(ctx context.Context, pinned values.Pinned, release string) (values.Held, error) {
	secret := &corev1.Secret{}
	key := client.ObjectKey{Namespace: pinned.Namespace, Name: shipper.ValuesSecretName(release)}
	err := v.reader.Get(ctx, key, secret)
	switch {
	case apierrors.IsNotFound(err), apierrors.IsForbidden(err) && v.writer == nil:
		return nil, nil
	case apierrors.IsForbidden(err):
		return nil, noValues(err, "Shipper may not read Secret %s; %s", key, values.PermissionHint(pinned.Namespace))
	case err != nil:
		return nil, noValues(err, "reading Secret %s: %s", key, err)
	}
	held := values.Held{}
	for i, source := range pinned.From {
		if content, there := secret.Data[strconv.Itoa(i)]; there {
			held[source.String()] = content
		}
	}
	if differs, err := pinned.Differing(held); differs != "" || err != nil {
		return nil, err
	}
	return held, nil
}

// find is what was held, of where else it may be: with other Releases, the newest first, or where it was.
func (v *Values) find(ctx context.Context, pinned values.Pinned) (values.Held, error) {
	var list shipper.ReleaseList
	err := v.releases.List(ctx, &list, client.InNamespace(pinned.Namespace), client.MatchingLabels{shipper.AppLabel: pinned.App})
	if err != nil {
		return nil, fmt.Errorf("listing the releases of %s/%s: %w", pinned.Namespace, pinned.App, err)
	}
	var all []*shipper.Release
	for i := range list.Items {
		all = append(all, &list.Items[i])
	}
	ordered, _ := stamp.SortByGeneration(all)
	wanted := shipper.ReleaseEnvironment{ValuesFrom: pinned.From, ValuesDigests: pinned.Digests}
	for _, rel := range slices.Backward(ordered) {
		if rel.Name == pinned.Release || !stamp.SameSources(&rel.Spec.Environment, &wanted) {
			continue
		}
		if held, err := v.kept(ctx, pinned, rel.Name); held != nil || err != nil {
			return held, err
		}
	}
	held, err := values.ReadSources(ctx, v.reader, pinned.Namespace, pinned.From)
	if broken, ok := errors.AsType[*values.SourceError](err); ok && broken.Forbidden && v.writer == nil {
		return nil, noValues(nil, "you may get neither %s in namespace %s nor the Secret that keeps what it held",
			pinned.From[broken.Index], pinned.Namespace)
	}
	if err != nil {
		return nil, err
	}
	differs, err := pinned.Differing(held)
	if err != nil || differs == "" {
		return held, err
	}
	return nil, noValues(nil, "%s does not hold what it held when this was admitted, and no Release keeps that; put it back, or take what "+
		"it holds now: kubectl annotate app %s %s=<anything new> --overwrite -n %s", differs, pinned.App,
		shipper.AppValuesRefreshAnnotation, pinned.Namespace)
}

// keep makes the Secret of a Release. The Release is there: another of its name has Secrets of its own.
func (v *Values) keep(ctx context.Context, pinned values.Pinned, held values.Held) error {
	rel := &shipper.Release{}
	if err := v.reader.Get(ctx, client.ObjectKey{Namespace: pinned.Namespace, Name: pinned.Release}, rel); err != nil {
		return fmt.Errorf("reading Release %s/%s: %w", pinned.Namespace, pinned.Release, err)
	}
	secret := secretOf(rel, held)
	err := v.writer.Create(ctx, secret, client.FieldOwner(shipper.FieldOwner), client.DisableReadYourWritesConsistency) // not cached
	switch {
	case apierrors.IsAlreadyExists(err):
		again, err := v.kept(ctx, pinned, pinned.Release)
		if err == nil && again == nil {
			err = noValues(nil, "Secret %s/%s is there and holds something else than what Release %s has from valuesFrom: delete it",
				pinned.Namespace, secret.Name, pinned.Release)
		}
		return err
	case apierrors.IsForbidden(err) && !apierrors.HasStatusCause(err, corev1.NamespaceTerminatingCause):
		return noValues(err, "Shipper may not keep what valuesFrom held in Secret %s/%s; %s", pinned.Namespace, secret.Name,
			values.PermissionHint(pinned.Namespace))
	case err != nil:
		return fmt.Errorf("keeping values in Secret %s/%s: %w", pinned.Namespace, secret.Name, err)
	}
	return nil
}

// checkOwner returns nil when what is kept for a Release is its own. That of an earlier Release of its name is about to be collected.
func (v *Values) checkOwner(ctx context.Context, rel *shipper.Release) error {
	secret := &metav1.PartialObjectMetadata{}
	secret.SetGroupVersionKind(corev1.SchemeGroupVersion.WithKind("Secret"))
	key := client.ObjectKey{Namespace: rel.Namespace, Name: shipper.ValuesSecretName(rel.Name)}
	if err := v.reader.Get(ctx, key, secret); err != nil {
		return fmt.Errorf("reading Secret %s: %w", key, err)
	}
	if stamp.OwnedBy(secret, rel) {
		return nil
	}
	return fmt.Errorf("keeping values for Release %s: Secret %s of an earlier Release of its name is still there", rel.Name, key)
}

// secretOf is the Secret that keeps what was held for a Release.
func secretOf(rel *shipper.Release, held values.Held) *corev1.Secret {
	always := true
	out := &corev1.Secret{
		ObjectMeta: metav1.ObjectMeta{
			Namespace: rel.Namespace, Name: shipper.ValuesSecretName(rel.Name),
			Labels:          map[string]string{shipper.AppLabel: rel.Labels[shipper.AppLabel], shipper.ReleaseLabel: rel.Name},
			OwnerReferences: []metav1.OwnerReference{ownedBy("Release", rel)},
		},
		Type: shipper.ValuesSecretType, Immutable: &always, Data: map[string][]byte{},
	}
	for i, source := range rel.Spec.Environment.ValuesFrom {
		if content, there := held[source.String()]; there {
			out.Data[strconv.Itoa(i)] = content
		}
	}
	return out
}

// noValues is why there are no values.
func noValues(cause error, format string, args ...any) error {
	return failed(shipper.ValuesFetchFailure, cause, fmt.Sprintf(format, args...))
}
