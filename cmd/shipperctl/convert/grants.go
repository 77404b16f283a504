// SPDX-License-Identifier: Apache-2.0

package convert

import (
	"slices"
	"strings"

	"k8s.io/apimachinery/pkg/api/meta"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/apimachinery/pkg/util/validation"

	shipper "shipper.dev/shipper/apis/shipper/v1alpha1"
	"shipper.dev/shipper/cmd/shipperctl/chartcheck"
	"shipper.dev/shipper/manifests"
	"shipper.dev/shipper/reconciler/member/rights"
)

// everywhere is the value of --placements for all namespaces, and for objects without one.
const everywhere = "*"

// grantsOf are the commands by which administrators let Shipper place what the Applications select and what Envelopes contain, once each.
// A name that no API server takes is in none: administrators paste them into a shell.
func grantsOf(all []fleetObject) ([]string, error) {
	var reads []string
	var writes []schema.GroupResource
	for _, one := range all {
		switch object := one.object.(type) {
		case *shipper.Application:
			reads = append(reads, readsOf(object, one.clusterWide)...)
			apply := object.Spec.Template.Apply
			for _, s := range object.Spec.Template.Resources.Select {
				if s.Group != shipper.GroupName && (apply == nil || apply.Type != shipper.ApplyReportDiff) {
					writes = append(writes, resourceOf(schema.GroupVersionKind{Group: s.Group, Kind: s.Kind}))
				}
			}
		case *shipper.Envelope:
			for _, manifest := range object.Spec.Manifests {
				version, _ := manifest["apiVersion"].(string)
				kind, _ := manifest["kind"].(string)
				if version != "" && kind != "" {
					writes = append(writes, resourceOf(schema.FromAPIVersionAndKind(version, kind)))
				}
			}
		}
	}
	reads = slices.DeleteFunc(reads, func(name string) bool { return name != everywhere && len(validation.IsDNS1123Label(name)) > 0 })
	writes = slices.DeleteFunc(writes, func(of schema.GroupResource) bool { return !servable(of) })
	var out []string
	if slices.Sort(reads); len(reads) > 0 {
		what := "what is selected, and keep Secrets of it"
		if slices.Contains(reads, everywhere) {
			what = "every object of the management cluster, Secrets included, and keep Secrets of what is selected"
		}
		out = append(out, "let Shipper read "+what+": shipperctl clusters setup management --placements '"+
			strings.Join(slices.Compact(reads), ",")+"'")
	}
	more, err := writeGrants(writes)
	return append(out, more...), err
}

// resourceOf is the resource of a kind, by the usual plural.
func resourceOf(gvk schema.GroupVersionKind) schema.GroupResource {
	plural, _ := meta.UnsafeGuessKindToResource(gvk)
	return plural.GroupResource()
}

// servable reports whether an API server can serve a resource with such names.
func servable(of schema.GroupResource) bool {
	return len(validation.IsDNS1035Label(of.Resource)) == 0 && (of.Group == "" || len(validation.IsDNS1123Subdomain(of.Group)) == 0)
}

// readsOf are the namespaces in which Shipper has to read what an Application selects, and in which it keeps Secrets of it. Namespaces
// and Envelopes it may read anyway.
func readsOf(app *shipper.Application, clusterWide bool) (out []string) {
	for _, s := range app.Spec.Template.Resources.Select {
		isNamespace := s.Group == "" && s.Kind == "Namespace"
		switch {
		case s.Group == shipper.GroupName, isNamespace && s.Content == shipper.ContentNone:
			continue
		case isNamespace && s.Name != "":
			out = append(out, s.Name, app.Namespace)
		case isNamespace, clusterWide:
			out = append(out, everywhere, app.Namespace)
		default:
			out = append(out, app.Namespace)
		}
	}
	return out
}

// writeGrants are the commands that let Shipper write resources in application clusters that it may not write by default.
func writeGrants(all []schema.GroupResource) ([]string, error) {
	slices.SortFunc(all, func(a, b schema.GroupResource) int { return strings.Compare(a.String(), b.String()) })
	lacking, err := chartcheck.NotByDefault(slices.Compact(all))
	if err != nil {
		return nil, err
	}
	granted, err := manifests.Placements()
	if err != nil {
		return nil, err
	}
	var joined, others []schema.GroupResource
	for _, one := range lacking {
		switch {
		case slices.Contains(granted, one):
			joined = append(joined, one)
		case !rights.Grants(one):
			others = append(others, one)
		}
	}
	var out []string
	if len(joined) > 0 {
		out = append(out, "let Shipper write "+joinedResources(joined)+" in each application cluster: shipperctl clusters join -f clusters.yaml "+
			"--placements")
	}
	if len(others) > 0 {
		out = append(out, "let Shipper write "+joinedResources(others)+", in each application cluster: "+rights.Grant(others...))
	}
	return out, nil
}

// reportPowerful reports a kind that Shipper may not write by default, which should stay so: it gives rights in the whole cluster.
func reportPowerful(gvk schema.GroupVersionKind, field string, report *report) {
	of := resourceOf(gvk)
	if lacking, err := chartcheck.NotByDefault([]schema.GroupResource{of}); err != nil || len(lacking) == 0 || !rights.Grants(of) {
		return
	}
	report.add(field, "has %s, which Shipper may not write, so that clusters are NotGranted: let an administrator of each cluster write "+
		"them, and leave them out here; or review what they allow, and grant each of them by name: %s", of,
		rights.ByName("", rights.GivesRights(of), rights.GrantName(of, "NAME")))
}

// commentGrants prints the commands of administrators. They are prerequisites, and nothing to review.
func commentGrants(out *strings.Builder, all []fleetObject) error {
	grants, err := grantsOf(all)
	for _, grant := range grants {
		out.WriteString("# grant: " + grant + "\n")
	}
	return err
}

// joinedResources names resources in a message.
func joinedResources(all []schema.GroupResource) string {
	out := make([]string, len(all))
	for i, one := range all {
		out[i] = one.String()
	}
	return strings.Join(out, ", ")
}
