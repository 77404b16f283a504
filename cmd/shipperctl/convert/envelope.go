// SPDX-License-Identifier: Apache-2.0

package convert

import (
	"maps"
	"slices"

	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"

	shipper "shipper.dev/shipper/apis/shipper/v1alpha1"
	"shipper.dev/shipper/chart/objects"
)

// envelopeOf makes an Envelope of one of KubeFleet's. The keys of its data are names of files without a meaning: they only give the order.
func envelopeOf(d document, with settings) (fleetObject, error) {
	if err := d.checkObjectName(kindOfEnvelopes); err != nil {
		return fleetObject{}, err
	}
	report := &report{object: d.title()}
	namespace := d.GetNamespace()
	if d.GetKind() == clusterEnvelope {
		namespace = with.home()
	}
	if d.isConfigMapEnvelope() {
		report.add("metadata.annotations."+envelopeAnnotation, "makes it an Envelope of the same name: delete the ConfigMap, which is data to "+
			"Shipper and would be placed as it is, and select the Envelope where a placement selects the ConfigMap")
		if len(present(d.Object["binaryData"])) > 0 {
			report.add("binaryData", "is left out: manifests are text")
		}
		if d.Object["immutable"] == true {
			report.add("immutable", "is left out: an Envelope can be edited by users who may place what it contains")
		}
	}
	all, err := manifestsIn(d)
	if err != nil {
		return fleetObject{}, err
	}
	switch {
	case len(all) == 0:
		return fleetObject{}, d.failed("data", "has no manifests")
	case len(all) > objects.MaxManifests:
		return fleetObject{}, d.failed("data", "has %d manifests, and an Envelope has %d at most: make several", len(all), objects.MaxManifests)
	}
	if _, errs := (objects.Policy{}).Unpack(all, namespace, nil); len(errs) > 0 {
		report.add("data", "makes an Envelope that Shipper refuses: %v", errs.ToAggregate())
	}
	envelope := &shipper.Envelope{TypeMeta: typeMeta(kindOfEnvelopes), ObjectMeta: fleetMetadata(d, namespace)}
	for i := range all {
		reportPowerful(all[i].GroupVersionKind(), "data", report)
		envelope.Spec.Manifests = append(envelope.Spec.Manifests, shipper.Manifest(all[i].Object))
	}
	return fleetObject{object: envelope, kind: kindOfEnvelopes, name: envelope.Name, reviews: report.reviews}, nil
}

// manifestsIn are the manifests in an envelope, by the order of their keys. Those in a ConfigMap are texts.
func manifestsIn(d document) ([]unstructured.Unstructured, error) {
	data := present(d.Object["data"])
	var out []unstructured.Unstructured
	for _, key := range slices.Sorted(maps.Keys(data)) {
		switch value := data[key].(type) {
		case map[string]any:
			out = append(out, unstructured.Unstructured{Object: value})
		case string:
			if !d.isConfigMapEnvelope() {
				return nil, d.failed("data."+key, "is a string, and must be an object")
			}
			found, err := read([]byte(value))
			if err != nil {
				return nil, d.failed("data."+key, "cannot be read: %w", err)
			}
			for _, one := range found {
				out = append(out, one.Unstructured)
			}
		default:
			return nil, d.failed("data."+key, "is not an object")
		}
	}
	return out, nil
}
