// SPDX-License-Identifier: Apache-2.0

package installation

import (
	"crypto/hmac"
	"crypto/sha256"
	"encoding/hex"
	"errors"
	"fmt"
	"strings"

	apierrors "k8s.io/apimachinery/pkg/api/errors"

	shipper "shipper.dev/shipper/apis/shipper/v1alpha1"
	"shipper.dev/shipper/chart"
	"shipper.dev/shipper/reconciler/fleet"
)

// secret tells whether what is rendered may hold what a Secret held, which then is told nowhere.
func (s sources) secret() bool { return !s.open && s.pinned.Secret() }

// keyed makes digests of what is to be written such that a password in it cannot be tried against them: they stand in annotations and
// in anchors, which more may read than may read Secrets. From holds the values by now, for they have been rendered.
func keyed(all []wanted, from *Later) error {
	key, err := from.Pinned.Key(from.Layers.Base)
	if err != nil {
		return err
	}
	for i := range all {
		sum := hmac.New(sha256.New, key)
		sum.Write([]byte(all[i].digest))
		all[i].digest = hex.EncodeToString(sum.Sum(nil))
	}
	return nil
}

// discreet is err without what may quote values that are secret: what templates say, and what API servers say of the objects that they
// render to. That something failed stays, with what and where.
func (s sources) discreet(err error) error {
	if err == nil || !s.secret() {
		return err
	}
	var status apierrors.APIStatus
	var told fleet.Judged
	var ofChart *chart.Error
	reason, remedy := fleet.Classify(err)
	switch {
	case errors.As(err, &ofChart):
		return chart.Withheld(err)
	case errors.As(err, &told): // worded here, by names of objects alone
		return err
	case errors.As(err, &status):
		return &problem{reason, remedy, unquoted(err, status)}
	case reason == shipper.InternalError: // there is no telling what words it
		return &problem{reason, remedy, "it failed" + chart.Unsaid}
	}
	return err
}

// unquoted is what was being done, why it failed, and which fields an API server names.
func unquoted(err error, status apierrors.APIStatus) string {
	doing, _, found := strings.Cut(err.Error(), status.Status().Message)
	if !found || status.Status().Message == "" {
		doing = ""
	}
	var fields []string
	if details := status.Status().Details; details != nil {
		for _, cause := range details.Causes {
			if cause.Field != "" {
				fields = append(fields, fmt.Sprintf("%s (%s)", cause.Field, cause.Type))
			}
		}
	}
	text := doing + "the API server answers " + string(apierrors.ReasonForError(err))
	if len(fields) > 0 {
		text += ", for " + strings.Join(fields, ", ")
	}
	return text + chart.Unsaid
}
