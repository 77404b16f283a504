// SPDX-License-Identifier: Apache-2.0

package health

import (
	"context"
	"fmt"
	"net/url"
	"slices"
	"strings"

	rbacv1 "k8s.io/api/rbac/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"sigs.k8s.io/controller-runtime/pkg/client"

	shipper "shipper.dev/shipper/apis/shipper/v1alpha1"
	"shipper.dev/shipper/manifests"
)

// elsewhere is the finding that Shipper is not set up where it is looked for, but elsewhere. Who may not read that hears
// nothing of it.
func (f *Fleet) elsewhere(ctx context.Context) []Finding {
	binding := &rbacv1.ClusterRoleBinding{}
	if err := f.Reader.Get(ctx, client.ObjectKey{Name: managementRole}, binding); err != nil {
		return nil
	}
	return elsewhereFindings(binding.Subjects, f.Namespace, f.ServiceAccount)
}

// elsewhereFindings is pure. The subjects are the accounts that may do what Shipper does.
func elsewhereFindings(subjects []rbacv1.Subject, namespace, account string) []Finding {
	at := func(s rbacv1.Subject) bool { return s.Namespace == namespace && s.Name == account }
	if len(subjects) == 0 || slices.ContainsFunc(subjects, at) {
		return nil
	}
	there := subjects[0]
	return []Finding{{
		Level: Broken, What: fmt.Sprintf("Shipper is not set up as %s/%s, but as %s/%s", namespace, account, there.Namespace, there.Name),
		Why: "what was looked for is not where it is",
		Do:  "shipperctl doctor" + placeFlags(there.Namespace, there.Name),
	}}
}

// placeFlags are the flags that say where Shipper is, as far as it is not where it usually is.
func placeFlags(namespace, account string) string {
	out := ""
	if namespace != shipper.SystemNamespace {
		out += " -n " + namespace
	}
	if account != shipper.ManagementServiceAccount {
		out += " --management-cluster-service-account " + account
	}
	return out
}

// setUpAgain is the command that sets up again what there is, by the flags that it was set up with.
func (f *Fleet) setUpAgain(ctx context.Context) string {
	out := setUp + placeFlags(f.Namespace, f.ServiceAccount)
	for _, folder := range []string{manifests.Webhook, manifests.Policy} {
		wanted, err := manifests.Objects(folder)
		if err != nil {
			return out
		}
		for _, want := range wanted {
			live, err := f.live(ctx, want)
			if err != nil || live == nil {
				continue
			}
			for _, flag := range flagsOf(live) {
				if !strings.Contains(out, flag) {
					out += flag
				}
			}
		}
	}
	return out
}

// flagsOf are flags that an object was made with.
func flagsOf(live *unstructured.Unstructured) []string {
	if namespace, found, _ := unstructured.NestedString(live.Object, "spec", "paramRef", "namespace"); found &&
		namespace != shipper.GlobalBlocksNamespace {
		return []string{" -g " + namespace}
	}
	all, _, _ := unstructured.NestedSlice(live.Object, "webhooks")
	for _, item := range all {
		object, is := item.(map[string]any)
		if !is {
			continue
		}
		text, _, _ := unstructured.NestedString(object, "clientConfig", "url")
		if u, err := url.Parse(text); err == nil && u.Host != "" {
			base := u.Path[:max(strings.LastIndex(u.Path, "/"), 0)] // the last element is the webhook's own
			return []string{" --webhook-url " + u.Scheme + "://" + u.Host + base}
		}
	}
	return nil
}

// advise puts the whole command in the place of the bare one.
func advise(checks []Check, command string) []Check {
	for i := range checks {
		for j := range checks[i].Findings {
			f := &checks[i].Findings[j]
			f.Do = strings.ReplaceAll(f.Do, setUp, command)
		}
	}
	return checks
}
