// SPDX-License-Identifier: Apache-2.0

package v1alpha1

import "encoding/json"

// Reference is the chart without archive and provenance, for objects that refer to their Release for those.
func (c Chart) Reference() Chart {
	c.Archive, c.Provenance = "", ""
	return c
}

// Same reports whether two name the same chart. How its objects are named does not count: Releases record that, templates seldom say it.
func (c Chart) Same(other Chart) bool {
	c.Naming, other.Naming = "", ""
	return c == other
}

// ChartSignature names the key that signed a chart's archive. ReleaseChartSignatureAnnotation has it as JSON.
type ChartSignature struct {
	// Digest is the sha256 (hex) of the archive.
	Digest string `json:"digest"`
	// Fingerprint is the key's, in capital hex. Identity is the name in the key; may be empty.
	Fingerprint string `json:"fingerprint"`
	Identity    string `json:"identity,omitempty"`
}

// Signature is the signature found when the Release's archive was verified; nil when it was not verified.
func (r *Release) Signature() *ChartSignature {
	var out ChartSignature
	noted, there := r.Annotations[ReleaseChartSignatureAnnotation]
	if !there || json.Unmarshal([]byte(noted), &out) != nil ||
		out.Fingerprint == "" || out.Digest == "" || out.Digest != r.Annotations[ReleaseChartDigestAnnotation] {
		return nil
	}
	return &out
}
