// SPDX-License-Identifier: Apache-2.0

package artifact

import (
	"encoding/json"
	"fmt"

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	shipper "shipper.dev/shipper/apis/shipper/v1alpha1"
	"shipper.dev/shipper/chart/objects"
)

// Keys of the data of a Secret with a part of the content.
const (
	// secretPart has the position of the part, as objects.Part without its text.
	secretPart = "part"
	// secretData has the text.
	secretData = "data"
)

// split separates the parts without Secrets from those with Secrets.
func split(parts []objects.Part) (plain, secret []objects.Part) {
	for _, p := range parts {
		if p.Secret {
			secret = append(secret, p)
		} else {
			plain = append(plain, p)
		}
	}
	return plain, secret
}

// snapshotsOf are the ResourceSnapshots of parts in a namespace, the head first, without owners.
func snapshotsOf(namespace string, parts []objects.Part) []*shipper.ResourceSnapshot {
	plain, secret := split(parts)
	out := make([]*shipper.ResourceSnapshot, len(plain))
	for i, p := range plain {
		number := int32(i + 1)
		out[i] = &shipper.ResourceSnapshot{
			ObjectMeta: metav1.ObjectMeta{Namespace: namespace, Name: shipper.ResourceSnapshotName(p.Digest, number)},
			Spec: shipper.ResourceSnapshotSpec{
				Digest: p.Digest, Objects: int32(p.Objects), Bytes: int64(p.Bytes), Parts: int32(len(plain)), Part: number,
				Secrets: int32(len(secret)), Data: p.Data,
			},
		}
	}
	return out
}

// secretsOf are the Secrets of parts in a namespace, without owners.
func secretsOf(namespace string, parts []objects.Part) ([]*corev1.Secret, error) {
	_, secret := split(parts)
	out := make([]*corev1.Secret, len(secret))
	for i, p := range secret {
		position := p
		position.Data = ""
		text, err := json.Marshal(position)
		if err != nil {
			return nil, fmt.Errorf("encoding the position of a part: %w", err)
		}
		always := true
		out[i] = &corev1.Secret{
			ObjectMeta: metav1.ObjectMeta{Namespace: namespace, Name: shipper.ResourceSnapshotName(p.Digest, int32(i+1))},
			Type:       shipper.ResourcesSecretType, Immutable: &always,
			Data: map[string][]byte{secretPart: text, secretData: []byte(p.Data)},
		}
	}
	return out, nil
}

// partOfSnapshot is the inverse of snapshotsOf.
func partOfSnapshot(spec shipper.ResourceSnapshotSpec) objects.Part {
	return objects.Part{
		Digest: spec.Digest, Objects: int(spec.Objects), Bytes: int(spec.Bytes), Parts: int(spec.Parts + spec.Secrets),
		Part: int(spec.Part - 1), Data: spec.Data,
	}
}

// partOfSecret is the inverse of secretsOf.
func partOfSecret(secret *corev1.Secret) (objects.Part, error) {
	var p objects.Part
	if err := json.Unmarshal(secret.Data[secretPart], &p); err != nil {
		return p, fmt.Errorf("reading data.%s: %w", secretPart, err)
	}
	p.Data = string(secret.Data[secretData])
	return p, nil
}
