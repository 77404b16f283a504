// SPDX-License-Identifier: Apache-2.0

package backup

import (
	"fmt"
	"io"
	"strings"
	"time"

	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/runtime"

	"shipper.dev/shipper/reconciler/fleet/credential"
)

// printEnded names the clusters whose credentials in the backup have ended: tokens live for a day by default.
func (b Backup) printEnded(out io.Writer, now time.Time) {
	var ended []string
	for _, e := range b {
		if e.Cluster == nil || e.ClusterSecret == nil {
			continue
		}
		secret := &corev1.Secret{}
		if runtime.DefaultUnstructuredConverter.FromUnstructured(e.ClusterSecret.Object, secret) != nil {
			continue // what is wrong with it is told by others
		}
		if c := credential.Read(secret); c.Ended(now) {
			ended = append(ended, fmt.Sprintf("%s (%s, %s)", e.Cluster.GetName(), c.Kind, c.NotAfter.Format(time.RFC3339)))
		}
	}
	if len(ended) > 0 {
		fmt.Fprintf(out, "Note: credentials in the backup have ended: %s. Run `shipperctl clusters join`, which makes tokens that are good; "+
			"for a client certificate delete its Secret before, or put another one into it\n", strings.Join(ended, ", "))
	}
}
