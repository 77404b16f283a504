// SPDX-License-Identifier: Apache-2.0

package stamp

import (
	"encoding/json"
	"slices"

	"shipper.dev/shipper/apis/rules/rights"
	shipper "shipper.dev/shipper/apis/shipper/v1alpha1"
)

// ClaimOf reads shipper.AppRunAnnotation or shipper.ReleaseRunAnnotation; an empty claim if it is none, or if Claim writes it otherwise: of
// a key that is there twice, the policy reads the first one.
func ClaimOf(annotation string) shipper.RunClaim {
	var out shipper.RunClaim
	if annotation == "" || json.Unmarshal([]byte(annotation), &out) != nil || Claim(out) != annotation {
		return shipper.RunClaim{}
	}
	return out
}

// HasUnreadClaim reports whether a Release has a claim of which nothing is read: who asked for it is not known then.
func HasUnreadClaim(rel *shipper.Release) bool {
	text := rel.Annotations[shipper.ReleaseRunAnnotation]
	return text != "" && Claim(ClaimOf(text)) != text
}

// Claim is the annotation of a claim.
func Claim(c shipper.RunClaim) string {
	raw, err := json.Marshal(c)
	if err != nil {
		return "" // texts and truth values have JSON
	}
	return string(raw)
}

// HeldByRun reports whether a Release is held because the run that it was made for, or one that repeats it, has a task release ahead.
func HeldByRun(rel *shipper.Release) bool {
	claim := ClaimOf(rel.Annotations[shipper.ReleaseRunAnnotation])
	return claim.Run != "" && rel.Spec.Hold == HoldOf(claim)
}

// HoldOf is spec.hold of a Release whose run has a task release ahead.
func HoldOf(c shipper.RunClaim) string {
	return "until the task release of run " + c.Namespace + "/" + c.Run
}

// Requesters are the users who asked for a Release: the one whose write made it, the users who asked for its run, and those who wrote what
// it has from ResourceOverrides. They do not approve its steps.
func Requesters(rel *shipper.Release) []string {
	out := append(ClaimOf(rel.Annotations[shipper.ReleaseRunAnnotation]).Requesters, rel.Annotations[shipper.ReleaseRequestedByAnnotation])
	for i := range rel.Spec.Overrides {
		out = append(out, writers(&rel.Spec.Overrides[i])...)
	}
	return out
}

// writers are the users who have written what a Release has from a ResourceOverride.
func writers(o *shipper.ReleaseOverride) []string {
	return append([]string{o.RequestedBy}, o.EarlierWriters...)
}

// OverrideBy is the name of a ResourceOverride in a Release that a user has written, as namespace/name; empty if there is none.
func OverrideBy(rel *shipper.Release, user string) string {
	for i := range rel.Spec.Overrides {
		if slices.Contains(writers(&rel.Spec.Overrides[i]), user) {
			return rel.Spec.Overrides[i].Name
		}
	}
	return ""
}

// AccountRequester is the ServiceAccount that asked for a Release, if it is one of its namespace or of that of its run; empty if none did.
// Users who may edit there may act as it, so that it does not say who asked. The runner of a run asks for nothing itself.
func AccountRequester(rel *shipper.Release) string {
	claim, by := ClaimOf(rel.Annotations[shipper.ReleaseRunAnnotation]), rel.Annotations[shipper.ReleaseRequestedByAnnotation]
	for _, name := range claim.Requesters {
		if rights.IsServiceAccountOf(name, claim.Namespace) || rights.IsServiceAccountOf(name, rel.Namespace) {
			return name
		}
	}
	isRunner := len(claim.Requesters) > 0 && rights.IsServiceAccountOf(by, claim.Namespace)
	if !isRunner && rights.IsServiceAccountOf(by, rel.Namespace) {
		return by
	}
	for i := range rel.Spec.Overrides {
		for _, name := range writers(&rel.Spec.Overrides[i]) {
			if rights.IsServiceAccountOf(name, rel.Namespace) {
				return name
			}
		}
	}
	return ""
}
