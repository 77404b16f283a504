// SPDX-License-Identifier: Apache-2.0

package stamp

import (
	"encoding/json"
	"fmt"

	shipper "shipper.dev/shipper/apis/shipper/v1alpha1"
)

// Failed is the environment of an Application that failed and was aborted; nil when none was, since another has completed.
func Failed(app *shipper.Application) *shipper.FailedEnvironment {
	var f shipper.FailedEnvironment
	if text := app.Annotations[shipper.AppFailedAnnotation]; text == "" || json.Unmarshal([]byte(text), &f) != nil {
		return nil
	}
	return &f
}

// Fail is the note of a Release that has failed and is to be aborted.
func Fail(rel *shipper.Release) (string, error) {
	digest, err := Digest(rel.Spec.Environment)
	if err != nil {
		return "", err
	}
	f := shipper.FailedEnvironment{Digest: digest, Release: rel.Name}
	if p := rel.Status.Progress; p != nil && p.Failure != nil {
		f.Step, f.Cluster, f.Reason, f.Check, f.Time = p.Failure.Step, p.Failure.Cluster, p.Failure.Reason, p.Failure.Check, p.Failure.Time
	}
	text, err := json.Marshal(f)
	if err != nil {
		return "", fmt.Errorf("noting the failure of release %q: %w", rel.Name, err)
	}
	return string(text), nil
}

// FailedAt is the step at which an environment failed, with the cluster if that is known.
func FailedAt(f *shipper.FailedEnvironment) string {
	at := fmt.Sprintf("step %d", f.Step)
	if f.Cluster != "" {
		at += " in " + f.Cluster
	}
	return at
}

// FailedBefore reports whether an environment is the one that failed.
func FailedBefore(f *shipper.FailedEnvironment, env *shipper.ReleaseEnvironment) bool {
	if f == nil {
		return false
	}
	digest, err := Digest(*env)
	return err == nil && digest == f.Digest
}
