// SPDX-License-Identifier: Apache-2.0

package rollout

import (
	"fmt"
	"strings"

	shipper "shipper.dev/shipper/apis/shipper/v1alpha1"
)

// maxNamed is how many objects a note names.
const maxNamed = 3

// Objects counts what was installed.
type Objects struct {
	Total   int32 `json:"total"`
	Healthy int32 `json:"healthy"`
}

// installedIn is what is known of a Release's objects in a cluster; nil when nothing is.
func installedIn(o *observed, release, cluster string) *shipper.InstalledObjects {
	if it := o.installed[release]; it != nil {
		for _, c := range it.Status.Clusters {
			if c.Name == cluster {
				return c.Objects
			}
		}
	}
	return nil
}

func objectsOf(o *observed, release, cluster string) *Objects {
	in := installedIn(o, release, cluster)
	if in == nil {
		return nil
	}
	return &Objects{Total: in.Total, Healthy: in.Healthy}
}

// ailing names some objects of a Release in a cluster that are not healthy. Of Deployments that get on, Pods tell.
func ailing(o *observed, release, cluster string) string {
	in := installedIn(o, release, cluster)
	if in == nil {
		return ""
	}
	var named []string
	silent := int32(0)
	for _, u := range in.Unhealthy {
		if u.Kind == "Deployment" && u.Status == "InProgress" {
			silent++
			continue
		}
		text := fmt.Sprintf("%s %s %s", u.Kind, u.Name, u.Status)
		if u.Reason != "" {
			text += " (" + u.Reason + ")"
		}
		named = append(named, text)
	}
	if len(named) == 0 {
		return ""
	}
	bad := in.Total - in.Healthy - silent
	text := strings.Join(named[:min(len(named), maxNamed)], ", ")
	if more := int(bad) - min(len(named), maxNamed); more > 0 {
		text += fmt.Sprintf(", and %d more", more)
	}
	return fmt.Sprintf("%d of %d objects not healthy: %s", bad, in.Total, text)
}
