// SPDX-License-Identifier: Apache-2.0

package v1alpha1

import "encoding/json"

// Reference is the chart without its archive and what belongs to that, for objects that leave it to their Release.
func (c Chart) Reference() Chart {
	c.Archive, c.Provenance = "", ""
	return c
}

// ChartSignature says who signed a chart's archive. As JSON it is ReleaseChartSignatureAnnotation.
type ChartSignature struct {
	// Digest is the sha256 (hex) of the archive.
	Digest string `json:"digest"`
	// Fingerprint is that of the key, in capital hex, and Identity the name that goes with it; may be empty.
	Fingerprint string `json:"fingerprint"`
	Identity    string `json:"identity,omitempty"`
}

// Signature is that of the archive that a Release is pinned to, as it was found when the Release was verified; nil when it was not.
func (r *Release) Signature() *ChartSignature {
	var out ChartSignature
	noted, there := r.Annotations[ReleaseChartSignatureAnnotation]
	if !there || json.Unmarshal([]byte(noted), &out) != nil ||
		out.Fingerprint == "" || out.Digest == "" || out.Digest != r.Annotations[ReleaseChartDigestAnnotation] {
		return nil
	}
	return &out
}
