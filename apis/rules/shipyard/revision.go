// SPDX-License-Identifier: Apache-2.0

package shipyard

import (
	"cmp"
	"crypto/sha256"
	"encoding/hex"
	"encoding/json"
	"strings"

	shipper "shipper.dev/shipper/apis/shipper/v1alpha1"
)

// Snapshot is what a run does of a Shipyard.
func Snapshot(of *shipper.Shipyard) *shipper.ShipyardSnapshot {
	return &shipper.ShipyardSnapshot{
		ServiceAccountName: cmp.Or(of.Spec.ServiceAccountName, shipper.DefaultRunner), Stages: of.DeepCopy().Spec.Stages,
	}
}

// RevisionOf is a Shipyard as it is. Two generations that differ in nothing that runs do are one revision.
func RevisionOf(of *shipper.Shipyard) shipper.ShipyardRevision {
	const (
		hashed  = 10
		maxName = 253
	)
	digest := Digest(Snapshot(of))
	own := sha256.Sum256([]byte(string(of.UID) + "/" + digest)) // another Shipyard of the name has revisions of its own
	name := strings.TrimRight(of.Name[:min(len(of.Name), maxName-1-hashed)], "-.") + "-" + hex.EncodeToString(own[:])[:hashed]
	return shipper.ShipyardRevision{UID: string(of.UID), Generation: of.Generation, Name: name, Digest: digest}
}

// Digest identifies what runs do of a Shipyard.
func Digest(of *shipper.ShipyardSnapshot) string {
	raw, err := json.Marshal(of)
	if err != nil {
		return "" // it came from JSON
	}
	sum := sha256.Sum256(raw)
	return hex.EncodeToString(sum[:])
}
