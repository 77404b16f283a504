// SPDX-License-Identifier: Apache-2.0

package installation

import (
	"crypto/hmac"
	"crypto/rand"
	"crypto/sha256"
	"encoding/hex"
	"errors"
	"fmt"
	"regexp"
	"slices"
	"strings"

	apierrors "k8s.io/apimachinery/pkg/api/errors"

	shipper "shipper.dev/shipper/apis/shipper/v1alpha1"
	"shipper.dev/shipper/chart"
	"shipper.dev/shipper/reconciler/fleet"
	"shipper.dev/shipper/reconciler/retry"
)

// secret reports whether values are content of a Secret: neither what objects hold nor how they are called may then be quoted.
func (s sources) secret() bool { return !s.open && s.pinned.Secret() }

// private reports whether objects may hold content of a Secret, which no message may then quote. Their names are the chart's own, unless
// values are secret.
func (s sources) private() bool { return s.secret() || !s.open && s.found }

// keyed makes digests of what is to be written such that a password in it cannot be tried against them: they stand in annotations and
// in anchors, which more may read than may read Secrets. From holds the values by now, if they have been rendered. Otherwise, and where a
// chart has looked up what may be secret, the key is random: the digests are stored.
func (s sources) keyed(all []wanted, from *Later) error {
	key := []byte(rand.Text())
	if s.secret() && from != nil {
		var err error
		if key, err = from.Pinned.Key(from.Layers.Base); err != nil {
			return err
		}
	}
	for i := range all {
		sum := hmac.New(sha256.New, key)
		sum.Write([]byte(all[i].digest))
		all[i].digest = hex.EncodeToString(sum.Sum(nil))
	}
	return nil
}

// called names an object in a message: by its kind and name or, where these may hold what a Secret held, by its place in the
// order of installation, which is that of `shipperctl chart render`.
func (i *installer) called(entry item) string {
	if !i.rendering.sources.secret() {
		return entry.String()
	}
	for n, w := range i.all {
		if w.content.GetAPIVersion() == entry.APIVersion && w.content.GetKind() == entry.Kind && w.content.GetName() == entry.Name {
			return fmt.Sprintf("object %d", n+1)
		}
	}
	if i.all == nil && i.anchor != nil {
		same := func(o item) bool {
			return o.APIVersion == entry.APIVersion && o.Kind == entry.Kind && o.Name == entry.Name
		}
		if n := slices.IndexFunc(i.anchor.inventory, same); n >= 0 {
			return fmt.Sprintf("object %d", n+1)
		}
	}
	return "an object of an earlier rendering"
}

// elsewhere refuses an object for another namespace.
func (i *installer) elsewhere(entry item, namespace string) error {
	if i.rendering.sources.secret() {
		return broken("%s of the chart is for another namespace; it can only be installed in %q", i.called(entry), i.it.Namespace)
	}
	return broken("%s of the chart is for namespace %q; it can only be installed in %q", entry, namespace, i.it.Namespace)
}

// about says what was being done when err was met. doing names objects as called does.
func (i *installer) about(doing string, err error) error { return &attempted{doing, err} }

// attempted is an error with what was being done, in words that hold nothing of a Secret.
type attempted struct {
	doing string
	err   error
}

// Error says both.
func (a *attempted) Error() string { return a.doing + ": " + a.err.Error() }

// Unwrap is the error that was met.
func (a *attempted) Unwrap() error { return a.err }

// discreet is err without what may quote values that are secret: what templates say, what API servers say of the objects that they
// render to, and the kinds and names of these, which templates make as well. That something failed stays, and of which object.
// Texts that wrap an error are dropped, unless they are attempted.
func (s sources) discreet(err error) error {
	if err == nil || !s.private() || errors.Is(err, errLoading) {
		return err
	}
	var status apierrors.APIStatus
	var own *problem
	var ofFleet *fleet.Error
	var claim *fleet.ClaimError
	var ofChart *chart.Error
	var at *attempted
	doing := ""
	if errors.As(err, &at) {
		doing = at.doing + ": "
	}
	reason, remedy := retry.ClassifyInCluster(err)
	switch {
	case errors.As(err, &ofChart):
		return chart.Withheld(ofChart)
	case errors.As(err, &own): // its words name objects as called does
		return &problem{reason, remedy, doing + own.message}
	case errors.As(err, &ofFleet):
		return ofFleet
	case errors.As(err, &claim):
		return claim
	case errors.As(err, &status):
		return &problem{reason, remedy, doing + unquoted(err, status)}
	case reason == shipper.ClusterUnreachable: // the URL of a request has the name of the object
		return &problem{reason, remedy, doing + "the cluster cannot be reached, or does not answer in time"}
	}
	return &problem{reason, remedy, doing + "it failed" + chart.Unsaid}
}

// unquoted is why something failed, and which fields an API server names.
func unquoted(err error, status apierrors.APIStatus) string {
	var fields []string
	if details := status.Status().Details; details != nil {
		for _, cause := range details.Causes {
			if cause.Field != "" {
				fields = append(fields, fmt.Sprintf("%s (%s)", openField(cause.Field, details.Group), cause.Type))
			}
		}
	}
	text := "the API server answers " + string(apierrors.ReasonForError(err))
	if len(fields) > 0 {
		text += ", for " + strings.Join(fields, ", ")
	}
	return text + chart.Unsaid
}

// plainField is the part of a field's path that cannot be a key of a map: Kubernetes writes those in brackets, where it writes
// the indices of lists, too.
var plainField = regexp.MustCompile(`^[A-Za-z][A-Za-z0-9]*(\[[0-9]+\])?(\.[A-Za-z][A-Za-z0-9]*(\[[0-9]+\])?)*`)

// openField is the path of a field as far as it holds no text of the object. Custom resources have keys of maps between dots.
func openField(path, group string) string {
	if strings.Contains(group, ".") && !strings.HasSuffix(group, ".k8s.io") {
		path, _, _ = strings.Cut(path, ".")
	}
	return plainField.FindString(path)
}

// withheld puts the place of an object where its name is in what status says of it.
func (i *installer) withheld(entry item, o *shipper.UnhealthyObject) {
	if i.rendering.sources.secret() {
		o.Name = i.called(entry)
		o.Message = strings.ReplaceAll(o.Message, entry.Name, o.Name)
	}
}
