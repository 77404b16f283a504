// SPDX-License-Identifier: Apache-2.0

package health

import (
	"encoding/base64"
	"fmt"
	"net/url"
	"slices"
	"strings"

	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
)

// setUp is what brings back what is missing in the management cluster.
const setUp = "shipperctl clusters setup management"

// webhook is one of a webhook configuration.
type webhook struct {
	name, failurePolicy string
	// host is what API servers ask, and bundle whom they trust to be it.
	host   string
	bundle []byte
}

// webhooksOf reads those of a configuration.
func webhooksOf(configuration *unstructured.Unstructured) []webhook {
	var out []webhook
	all, _, _ := unstructured.NestedSlice(configuration.Object, "webhooks") // what is malformed was not taken by the API server
	for _, item := range all {
		object, is := item.(map[string]any)
		if !is {
			continue
		}
		text := func(path ...string) string {
			found, _, _ := unstructured.NestedString(object, path...)
			return found
		}
		w := webhook{name: text("name"), failurePolicy: text("failurePolicy")}
		if service := text("clientConfig", "service", "name"); service != "" {
			w.host = service + "." + text("clientConfig", "service", "namespace") + ".svc"
		} else if u, err := url.Parse(text("clientConfig", "url")); err == nil {
			w.host = u.Hostname()
		}
		w.bundle, _ = base64.StdEncoding.DecodeString(text("clientConfig", "caBundle"))
		out = append(out, w)
	}
	return out
}

// webhookFindings compares a configuration with that of the manifests. live is nil when there is none.
func webhookFindings(want, live *unstructured.Unstructured) []Finding {
	const unjudged = "writes to Shipper's kinds are neither completed nor judged: what is wrong is stored"
	if live == nil {
		return []Finding{{
			Level: Broken, What: "there is no " + want.GetKind() + " " + want.GetName(), Why: unjudged, Do: setUp,
		}}
	}
	are := webhooksOf(live)
	var missing, lenient []string
	for _, w := range webhooksOf(want) {
		i := slices.IndexFunc(are, func(is webhook) bool { return is.name == w.name })
		switch {
		case i < 0:
			missing = append(missing, w.name)
		case w.failurePolicy == "Fail" && are[i].failurePolicy != "Fail":
			lenient = append(lenient, w.name)
		}
	}
	var out []Finding
	if len(missing) > 0 {
		out = append(out, Finding{
			Level: Broken, What: "its " + want.GetKind() + " lacks " + strings.Join(missing, ", "), Why: unjudged, Do: setUp,
		})
	}
	if len(lenient) > 0 {
		out = append(out, Finding{
			Level: Warning, What: fmt.Sprintf("failurePolicy is Ignore for %s", strings.Join(lenient, ", ")),
			Why: "while no webhook answers, writes pass that it would refuse; blocks are held by the policy alone",
			Do:  "when Shipper runs: shipperctl clusters join, without --webhook-ignore",
		})
	}
	return out
}
