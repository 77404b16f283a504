// SPDX-License-Identifier: Apache-2.0

package health

import (
	"encoding/base64"
	"fmt"
	"net/url"
	"reflect"
	"slices"
	"strings"
	"time"

	appsv1 "k8s.io/api/apps/v1"
	coordinationv1 "k8s.io/api/coordination/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"

	"shipper.dev/shipper/cmd/shipperctl/cli"
)

// kindFindings compares a CustomResourceDefinition with that of the manifests. live is nil when there is none.
func kindFindings(want, live *unstructured.Unstructured) []Finding {
	const needed = "Shipper does not work without any of its kinds"
	if live == nil {
		return []Finding{broken("there is no CustomResourceDefinition "+want.GetName(), needed, setUp)}
	}
	var out []Finding
	if !served(live) {
		out = append(out, broken("the CustomResourceDefinition "+want.GetName()+" is not served",
			needed, "look at its conditions: kubectl get crd "+want.GetName()+" -o yaml"))
	}
	if !contains(live.Object["spec"], want.Object["spec"]) {
		out = append(out, broken("the CustomResourceDefinition "+want.GetName()+" is not that of this shipperctl",
			"API servers drop fields that it does not have", "with the shipperctl of the Shipper that runs: "+setUp))
	}
	if keeps, _, _ := unstructured.NestedBool(live.Object, "spec", "preserveUnknownFields"); keeps {
		out = append(out, broken("the CustomResourceDefinition "+want.GetName()+" keeps unknown fields, as the original's did",
			"misspelled fields are taken without a word", setUp))
	}
	return out
}

func served(crd *unstructured.Unstructured) bool {
	conditions, _, _ := unstructured.NestedSlice(crd.Object, "status", "conditions")
	for _, item := range conditions {
		if c, is := item.(map[string]any); is && c["type"] == "Established" {
			return c["status"] == "True"
		}
	}
	return false
}

// contains reports whether is has every field of want. API servers add defaults.
func contains(is, want any) bool {
	switch want := want.(type) {
	case map[string]any:
		have, same := is.(map[string]any)
		if !same {
			return false
		}
		for key, value := range want {
			if !contains(have[key], value) {
				return false
			}
		}
		return true
	case []any:
		have, same := is.([]any)
		if !same || len(have) != len(want) {
			return false
		}
		for i := range want {
			if !contains(have[i], want[i]) {
				return false
			}
		}
		return true
	case int64:
		if have, float := is.(float64); float {
			return have == float64(want)
		}
	case float64:
		if have, whole := is.(int64); whole {
			return float64(have) == want
		}
	}
	return reflect.DeepEqual(is, want)
}

// secretsPolicy is the name of the policy that holds Shipper's own account, and of its binding.
const secretsPolicy = "secrets.shipper.booking.com"

// clustersPolicy is the name of the policy that limits Shipper's own writes of Clusters, and of its binding.
const clustersPolicy = "clusters.shipper.booking.com"

// envelopesPolicy is the name of the policy that judges Envelopes, and of its binding.
const envelopesPolicy = "envelopes.shipper.booking.com"

// overridesPolicy is the name of the policy that judges ResourceOverrides, and of its binding.
const overridesPolicy = "overrides.shipper.booking.com"

// credentialsPolicy is the name of the policy that judges Checks, Notifications and Applications with Secrets, and of its binding.
const credentialsPolicy = "credentials.shipper.booking.com"

// resourcesPolicy is the name of the policy that judges changes of Applications with resources, and of its binding.
const resourcesPolicy = "resources.shipper.booking.com"

// ownersPolicy is the name of the policy that protects owners of Shipper's objects, and of its binding.
const ownersPolicy = "owners.shipper.booking.com"

// unheldWithout is what goes on without a policy, or without its binding.
func unheldWithout(policy string) string {
	switch policy {
	case "approvals.shipper.booking.com":
		return "while no webhook is asked, users can approve who may not, and what they asked for themselves"
	case clustersPolicy:
		return "a thief of the credentials of Shipper's account can change the addresses and taints of Clusters"
	case "control.shipper.booking.com":
		return "while no webhook is asked, users can change what only Shipper writes, and pass gates"
	case credentialsPolicy:
		return "while no webhook is asked, users can have Secrets sent that they may not read, by Checks, Notifications and Applications"
	case "definitions.shipper.booking.com":
		return "who deletes a CustomResourceDefinition of Shipper deletes all its objects, and what they have in clusters"
	case envelopesPolicy:
		return "while no webhook is asked, users can write Envelopes with objects that they may not place on clusters"
	case overridesPolicy:
		return "while no webhook is asked, users can change what the Applications of others install, by ResourceOverrides"
	case ownersPolicy:
		return "users can have the garbage collector delete what they may not delete, by adding an owner to it"
	case resourcesPolicy:
		return "while no webhook is asked, users can change and remove what Applications place with the rights of others"
	case secretsPolicy:
		return "who has stolen the credentials of Shipper's account may write whatever he likes into the Secrets of its namespace"
	case "sequenceruns.shipper.booking.com":
		return "while no webhook is asked, users can start and change runs of Shipyards who may not"
	}
	return "RolloutBlocks do not hold while no webhook is asked"
}

// policyFindings reports whether an admission policy, or its binding, exists and refuses. live is nil when there is none.
func policyFindings(want, live *unstructured.Unstructured) []Finding {
	unheld := unheldWithout(want.GetName())
	name := want.GetKind() + " " + want.GetName()
	if live == nil {
		return []Finding{broken("there is no "+name, unheld, setUp)}
	}
	if policy, found, _ := unstructured.NestedString(live.Object, "spec", "failurePolicy"); found && policy != "Fail" {
		return []Finding{broken(fmt.Sprintf("%s has failurePolicy %s", name, policy), unheld, setUp)}
	}
	actions, found, _ := unstructured.NestedStringSlice(live.Object, "spec", "validationActions")
	if found && !slices.Contains(actions, "Deny") {
		return []Finding{broken(fmt.Sprintf("%s does not deny: its actions are %v", name, actions), unheld, setUp)}
	}
	return nil
}

// fairnessFindings reports a FlowSchema or a priority level that does not share out Shipper's requests.
func fairnessFindings(want, live *unstructured.Unstructured) []Finding {
	name := want.GetKind() + " " + want.GetName()
	unshared := func(what string) []Finding {
		return []Finding{warning(what,
			"requests of Shipper wait among those of all service accounts, and one team's thousand changes delay the others'", setUp)}
	}
	if live == nil {
		return unshared("there is no " + name)
	}
	at := func(o *unstructured.Unstructured) string { // a number of a manifest is a float64, one that is read an int64
		n, _, _ := unstructured.NestedFieldNoCopy(o.Object, "spec", "matchingPrecedence")
		return fmt.Sprint(n)
	}
	if at(live) != at(want) {
		return unshared(fmt.Sprintf("%s has matchingPrecedence %s instead of %s", name, at(live), at(want)))
	}
	conditions, _, _ := unstructured.NestedSlice(live.Object, "status", "conditions")
	for _, c := range conditions {
		if c, is := c.(map[string]any); is && c["type"] == "Dangling" && c["status"] == "True" {
			return unshared(fmt.Sprintf("%s does not work: %v", name, c["message"]))
		}
	}
	return nil
}

// setUp is the command that restores missing objects in the management cluster.
const setUp = "shipperctl clusters setup management"

// webhook is one of a webhook configuration.
type webhook struct {
	name, failurePolicy string
	// host is the name that API servers call, bundle the CA that must have signed its certificate.
	host   string
	bundle []byte
	// path is the path or the URL that they call.
	path string
}

// webhooksOf reads those of a configuration.
func webhooksOf(configuration *unstructured.Unstructured) []webhook {
	var out []webhook
	all, _, _ := unstructured.NestedSlice(configuration.Object, "webhooks") // the API server refuses malformed ones
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
			w.path = text("clientConfig", "service", "path")
		} else if u, err := url.Parse(text("clientConfig", "url")); err == nil {
			w.host, w.path = u.Hostname(), u.Path
		}
		w.bundle, _ = base64.StdEncoding.DecodeString(text("clientConfig", "caBundle"))
		out = append(out, w)
	}
	return out
}

// webhookFindings compares a configuration with that of the manifests. live is nil when there is none.
func webhookFindings(want, live *unstructured.Unstructured) []Finding {
	const unjudged = "writes to Shipper's kinds are neither completed nor validated: invalid objects are stored"
	if live == nil {
		return []Finding{broken("there is no "+want.GetKind()+" "+want.GetName(), unjudged, setUp)}
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
		out = append(out, broken("its "+want.GetKind()+" lacks "+strings.Join(missing, ", "), unjudged, setUp))
	}
	if len(lenient) > 0 {
		out = append(out, warning(fmt.Sprintf("failurePolicy is Ignore for %s", strings.Join(lenient, ", ")),
			"while no webhook answers, writes pass that it would refuse; blocks are held by the policy alone",
			"when Shipper runs: shipperctl clusters join, without --webhook-ignore"))
	}
	return out
}

// DeploymentName is the name of the Deployment in Shipper's namespace.
const DeploymentName = "shipper"

const certificateSecret = "shipper-webhook-cert" // in Shipper's namespace

// deploymentFindings reports whether Shipper's Pods are ready. d is nil when Shipper runs elsewhere.
func deploymentFindings(d *appsv1.Deployment) []Finding {
	if d == nil {
		return nil
	}
	wanted := int32(1)
	if d.Spec.Replicas != nil {
		wanted = *d.Spec.Replicas
	}
	f := Finding{
		Level: levelBroken, Why: "writes are not validated, and nothing is rolled out",
		Do: fmt.Sprintf("kubectl describe pods -n %s -l app.kubernetes.io/name=shipper", d.Namespace),
	}
	switch ready := d.Status.ReadyReplicas; {
	case wanted == 0:
		f.What = fmt.Sprintf("the Deployment %s/%s is to have no Pods", d.Namespace, d.Name)
		f.Do = fmt.Sprintf("kubectl scale deployment %s -n %s --replicas=2, unless that is meant", d.Name, d.Namespace)
	case ready == 0:
		f.What = fmt.Sprintf("none of %d Pods of the Deployment %s/%s is ready", wanted, d.Namespace, d.Name)
	case ready < wanted:
		f.Level = levelWarning
		f.What = fmt.Sprintf("%d of %d Pods of the Deployment %s/%s are ready", ready, wanted, d.Namespace, d.Name)
		f.Why = "fewer are left when one goes"
	default:
		return nil
	}
	return []Finding{f}
}

// leaseFindings reports whether a reconciler leads. l is nil when there is no Lease.
func leaseFindings(l *coordinationv1.Lease, now time.Time) []Finding {
	f := Finding{
		Level: levelBroken, Why: "nothing is rolled out, and no status is updated; Pods keep running",
		Do: "start the reconciler, or look at its log",
	}
	if l == nil {
		f.What = "no reconciler has ever led: there is no Lease " + cli.LeaseName
		return []Finding{f}
	}
	leader := cli.LeaderOf(l)
	switch {
	case leader == nil:
		f.What = "no reconciler leads: nothing holds the Lease " + cli.LeaseName
	case now.After(leader.Until):
		f.What = fmt.Sprintf("the reconciler %s has not renewed its Lease %s since %s", leader.Name, cli.LeaseName,
			l.Spec.RenewTime.UTC().Format(time.RFC3339))
		f.Do += ". If it runs, compare the clock of this machine with its own"
	default:
		return nil
	}
	return []Finding{f}
}
