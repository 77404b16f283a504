// SPDX-License-Identifier: Apache-2.0

package resourceoverride_test

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"testing"

	"github.com/google/go-cmp/cmp"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"
	"sigs.k8s.io/controller-runtime/pkg/webhook/admission"

	"shipper.dev/shipper/apis/rules/override"
	shipper "shipper.dev/shipper/apis/shipper/v1alpha1"
	"shipper.dev/shipper/chart"
	"shipper.dev/shipper/chart/render"
	"shipper.dev/shipper/test/admission/ask"
	"shipper.dev/shipper/webhook/resourceoverride"
	"shipper.dev/shipper/webhook/response"
)

const (
	updateAll  = " update applications shop/"
	everywhere = " update applications /"
)

// reading are the rights to read what valuesFrom may name.
func reading(user string) []string {
	return []string{user + " list secrets shop/", user + " list configmaps shop/"}
}

// editor are the rights of a user who may write ResourceOverrides for all Applications of the namespace.
func editor(user string) []string { return append(reading(user), user+updateAll) }

// labels is an override that labels ConfigMaps of the Applications called names, of all without.
func labels(namespace string, names ...string) *shipper.ResourceOverride {
	o := &shipper.ResourceOverride{ObjectMeta: metav1.ObjectMeta{Namespace: namespace, Name: "labels"}}
	o.Spec = shipper.ResourceOverrideSpec{
		ApplicationNames: names, Resources: []shipper.OverriddenResource{{Kind: "ConfigMap"}},
		Rules: []shipper.OverrideRule{{Patch: []shipper.PatchOperation{{"op": "add", "path": "/metadata/labels/a", "value": "b"}}}},
	}
	return o
}

// writtenBy records a user as the author.
func writtenBy(user string, o *shipper.ResourceOverride) *shipper.ResourceOverride {
	metav1.SetMetaDataAnnotation(&o.ObjectMeta, shipper.OverrideRequestedByAnnotation, user)
	return o
}

// create is a request as the mutating webhook leaves it.
func create(user string, o *shipper.ResourceOverride) *admission.Request {
	return ask.Create(user, writtenBy(user, o))
}

func changed(o *shipper.ResourceOverride, edit func(*shipper.ResourceOverride)) *shipper.ResourceOverride {
	edit(o)
	return o
}

// TestWhoChangesWhatApplicationsInstallMayUpdateThem has the attacks of users who may write ResourceOverrides, and not more.
func TestWhoChangesWhatApplicationsInstallMayUpdateThem(t *testing.T) {
	owned := func(o *shipper.ResourceOverride) {
		o.OwnerReferences = []metav1.OwnerReference{{APIVersion: "v1", Kind: "ConfigMap", Name: "a", UID: "1"}}
	}
	merge := func(o *shipper.ResourceOverride) { o.Spec.Rules[0].Patch[0]["op"] = "merge" }
	mandatory := func(o *shipper.ResourceOverride) { o.Spec.Mandatory = true }
	all, one, place := editor("ann"), append(reading("bob"), "bob"+updateAll+"web"), "ann place *.* /"
	taken := ask.Update("bob", writtenBy("bob", labels("shop", "web")), labels("shop", "api"))
	given := ask.Update("bob", changed(labels("shop"), owned), labels("shop"))
	const controller = "system:serviceaccount:kube-system:namespace-controller"
	label := func(o *shipper.ResourceOverride) { o.Labels = map[string]string{"a": "b"} }
	for sentence, tc := range map[string]struct {
		req     *admission.Request
		granted []string
		want    response.Decision
	}{
		"a user who may update all Applications":      {create("ann", labels("shop")), all, ""},
		"a user who may update none":                  {create("bob", labels("shop")), nil, response.Forbidden},
		"a user who may update the named one":         {create("bob", labels("shop", "web")), one, ""},
		"a user who may update one of two":            {create("bob", labels("shop", "web", "api")), one, response.Forbidden},
		"a user who may update one, and selects all":  {create("bob", labels("shop")), one, response.Forbidden},
		"taking an override away changes it, too":     {ask.Delete("bob", labels("shop")), nil, response.Forbidden},
		"as does taking it over to another one":       {taken, one, response.Forbidden},
		"as does an owner that is deleted":            {given, nil, response.Forbidden},
		"labels of the override mean nothing":         {ask.Update("bob", changed(labels("shop"), label), labels("shop")), nil, ""},
		"a namespace that is deleted":                 {ask.Delete(controller, labels("shop")), nil, ""},
		"a global override needs all namespaces":      {create("ann", labels("global")), append(all, place), response.Forbidden},
		"and the right to place":                      {create("ann", labels("global")), []string{"ann" + everywhere}, response.Forbidden},
		"which administrators have":                   {create("ann", labels("global")), []string{"ann" + everywhere, place}, ""},
		"a user who may read no Secrets":              {create("ann", labels("shop")), all[1:], response.Forbidden},
		"a user who may read no ConfigMaps":           {create("ann", labels("shop")), []string{all[0], all[2]}, response.Forbidden},
		"a patch that is none":                        {create("ann", changed(labels("shop"), merge)), all, response.Invalid},
		"a mandatory override outside the global one": {create("ann", changed(labels("shop"), mandatory)), all, response.Invalid},
	} {
		t.Run(sentence, func(t *testing.T) {
			hook := &resourceoverride.Webhook{Authz: ask.Grant(tc.granted...), GlobalNamespace: "global", State: known{}, Charts: &judging{}}
			err := hook.Validate(t.Context(), tc.req, &response.Response{})
			got := response.Decision("")
			if refusal, ok := errors.AsType[*response.Refusal](err); ok {
				got = refusal.Decision
			} else if err != nil {
				t.Fatal(err)
			}
			if got != tc.want {
				t.Errorf("got %q (%v), want %q", got, err, tc.want)
			}
		})
	}
}

func TestTheRefusalNamesTheRightAndTheCommand(t *testing.T) {
	hook := &resourceoverride.Webhook{Authz: ask.Grant(), GlobalNamespace: "global", State: known{}, Charts: &judging{}}
	err := hook.Validate(t.Context(), create("bob", labels("shop")), &response.Response{})
	ask.CheckRefusal(t, err, response.Forbidden, `spec.applicationNames: `+
		`a ResourceOverride changes what Applications install: user "bob" may not update all applications.shipper.booking.com in namespace `+
		`shop; ask the owner of the namespace to run: kubectl -n shop create role update-applications --verb=update `+
		`--resource=applications.shipper.booking.com; kubectl -n shop create rolebinding update-applications-bob --role=update-applications `+
		`--user=bob`)
}

// effect is the last warning of each write.
const effect = "it takes effect with the next Release of each Application that it bears on; Releases that exist stay as they are"

func TestAnEditSaysWhatIsNotTriedAndWhenItTakesEffect(t *testing.T) {
	const fails = "a rule that does not apply fails in the clusters then"
	for sentence, tc := range map[string]struct {
		o    *shipper.ResourceOverride
		want []string
	}{
		"without names": {labels("shop"), []string{"not tried: only the Applications in applicationNames are; " + fails, effect}},
		"of all namespaces": {labels("global", "web"), []string{
			"not tried: a ResourceOverride in the global namespace may bear on the Applications of all namespaces; " + fails, effect,
		}},
	} {
		t.Run(sentence, func(t *testing.T) {
			authz := ask.Grant(append(editor("ann"), "ann"+everywhere, "ann place *.* /")...)
			hook := &resourceoverride.Webhook{Authz: authz, GlobalNamespace: "global", State: known{}, Charts: &judging{}}
			a := &response.Response{}
			if err := hook.Validate(t.Context(), create("ann", tc.o), a); err != nil {
				t.Fatal(err)
			}
			if diff := cmp.Diff(tc.want, a.Warnings()); diff != "" {
				t.Error(diff)
			}
		})
	}
}

// TestAnOverrideForWhichAReleaseHasNoRoomIsRefused: otherwise the Application would have no further Release.
func TestAnOverrideForWhichAReleaseHasNoRoomIsRefused(t *testing.T) {
	long := func(name string, names ...string) *shipper.ResourceOverride {
		o := labels("shop", names...)
		o.Name = name
		o.Spec.Rules[0].Patch = slices.Repeat(o.Spec.Rules[0].Patch, 600)
		return o
	}
	const full = `ResourceOverride.shipper.booking.com "new" is invalid: spec: Invalid value: "": no Release of Application placed could be ` +
		`created: 2 ResourceOverrides bear on the Application and have 1200 operations, more than the 750 that a Release may keep: delete ` +
		`some, or let them name fewer Applications`
	for sentence, tc := range map[string]struct {
		there *shipper.ResourceOverride
		new   *shipper.ResourceOverride
		want  string
	}{
		"beside one of the same Application":                   {long("other", "placed"), long("new"), full},
		"not beside one of another":                            {long("other", "web"), long("new", "placed"), ""},
		"nor in place of itself":                               {long("new"), long("new", "placed"), ""},
		"nor without an Application that both of them bear on": {long("other", "gone"), long("new"), ""},
	} {
		t.Run(sentence, func(t *testing.T) {
			hook := &resourceoverride.Webhook{Authz: ask.Grant(editor("ann")...), GlobalNamespace: "global", Charts: &judging{},
				State: known{overrides: []shipper.ResourceOverride{*tc.there}}}
			decision := response.Decision("")
			if tc.want != "" {
				decision = response.Invalid
			}
			ask.CheckRefusal(t, hook.Validate(t.Context(), create("ann", tc.new), &response.Response{}), decision, tc.want)
		})
	}
}

// known has a Release of web in clusters eu-1 and eu-2, one of placed, which has resources, and ResourceOverrides, unless these cannot be
// listed.
type known struct {
	overrides []shipper.ResourceOverride
	err       error
}

func (known) Applications(namespace string) ([]*metav1.PartialObjectMetadata, error) {
	var out []*metav1.PartialObjectMetadata
	for _, name := range []string{"web", "placed"} {
		out = append(out, &metav1.PartialObjectMetadata{ObjectMeta: metav1.ObjectMeta{Namespace: namespace, Name: name}})
	}
	return out, nil
}

func (k known) OverridesNow(_ context.Context, namespace string) ([]override.Outline, error) {
	var out []override.Outline
	for i := range k.overrides {
		if k.overrides[i].Namespace == namespace {
			out = append(out, override.OutlineOf(&k.overrides[i], "global"))
		}
	}
	return out, k.err
}

func (known) Releases(app types.NamespacedName) ([]*shipper.Release, error) {
	rel := &shipper.Release{ObjectMeta: metav1.ObjectMeta{
		Namespace: app.Namespace, Name: app.Name + "-1-0", Labels: map[string]string{shipper.AppLabel: app.Name},
		Annotations: map[string]string{
			shipper.ReleaseGenerationAnnotation: "0", shipper.ReleaseClustersAnnotation: "eu-1,eu-2",
		},
	}}
	switch app.Name {
	case "web":
	case "placed":
		rel.Spec.Environment.Resources = &shipper.Resources{}
	default:
		return nil, nil
	}
	return []*shipper.Release{rel}, nil
}

func (known) Clusters() []shipper.Cluster {
	var out []shipper.Cluster
	for _, name := range []string{"eu-1", "eu-2", "us-1"} {
		out = append(out, shipper.Cluster{ObjectMeta: metav1.ObjectMeta{Name: name}})
	}
	return out
}

// judging fails where a Release has an override in a cluster, and notes the clusters.
type judging struct {
	err   error
	asked []string
}

func (j *judging) Judge(_ context.Context, rel *shipper.Release, in render.Cluster) ([]string, error) {
	if len(rel.Spec.Overrides) == 0 {
		return nil, nil
	}
	j.asked = append(j.asked, fmt.Sprintf("%s rules %d", in.Place.Cluster, len(rel.Spec.Overrides[0].Rules)))
	return nil, j.err
}

func TestRulesAreTriedOnWhatIsInstalled(t *testing.T) {
	in := func(name string) []shipper.OverrideClusterTerm {
		return []shipper.OverrideClusterTerm{{Names: []string{name}}}
	}
	failed := &chart.Error{Reason: shipper.OverrideFailed, Message: "no such path"}
	for sentence, tc := range map[string]struct {
		names   []string
		err     error
		asked   []string
		message string
		warned  []string
	}{
		"each in a cluster that it matches": {[]string{"web"}, nil, []string{"eu-1 rules 1", "eu-2 rules 2"}, "", []string{effect}},
		"one that fails is refused": {
			[]string{"web"}, failed, []string{"eu-1 rules 1"}, `ResourceOverride.shipper.booking.com "labels" is invalid: spec.rules[0]: ` +
				`Invalid value: "": tried on Application web in cluster eu-1: no such path`, nil,
		},
		"not if the chart is not there": {
			[]string{"web"}, &chart.Error{Message: "no answer", Retry: true}, []string{"eu-1 rules 1"}, "",
			[]string{"not tried on Application web: no answer", effect},
		},
		"not of resources": {[]string{"placed"}, failed, nil, "", []string{"not tried on Application placed: it has resources", effect}},
		"not without a Release": {
			[]string{"new"}, failed, nil, "", []string{"not tried on Application new: it has no Release yet", effect},
		},
	} {
		t.Run(sentence, func(t *testing.T) {
			charts := &judging{err: tc.err}
			hook := &resourceoverride.Webhook{Authz: ask.Grant(editor("ann")...), GlobalNamespace: "global", State: known{}, Charts: charts}
			o := labels("shop", tc.names...)
			patch := o.Spec.Rules[0].Patch
			o.Spec.Rules = append(o.Spec.Rules, shipper.OverrideRule{ClusterTerms: in("eu-2"), Patch: patch},
				shipper.OverrideRule{ClusterTerms: in("us-1"), Patch: patch})
			a := &response.Response{}
			decision := response.Decision("")
			if tc.message != "" {
				decision = response.Invalid
			}
			ask.CheckRefusal(t, hook.Validate(t.Context(), create("ann", o), a), decision, tc.message)
			if diff := cmp.Diff([][]string{tc.asked, tc.warned}, [][]string{charts.asked, a.Warnings()}); diff != "" {
				t.Error(diff)
			}
		})
	}
}

// TestVariablesHaveAValueInEachClusterOfARelease: Applications with resources are compared, too.
func TestVariablesHaveAValueInEachClusterOfARelease(t *testing.T) {
	invalid := func(app, variable, kind string) string {
		return fmt.Sprintf(`ResourceOverride.shipper.booking.com "labels" is invalid: spec.rules[0]: Invalid value: "": Application %s is in `+
			`cluster eu-2, and there patch[0]: ${%s} has no value: Cluster "eu-2" has no such %s: give all clusters a value, or leave this `+
			`one out with clusterTerms`, app, variable, kind)
	}
	for sentence, tc := range map[string]struct {
		app, variable string
		in            []string
		want          string
	}{
		"a property that all have": {"web", "cluster.properties['cost']", nil, ""},
		"a property that one lacks": {
			"web", "cluster.properties['disks']", nil, invalid("web", "cluster.properties['disks']", "property"),
		},
		"where the rule does not match it": {"web", "cluster.properties['disks']", []string{"eu-1", "us-1"}, ""},
		"a label that one lacks":           {"placed", "cluster.labels['env']", nil, invalid("placed", "cluster.labels['env']", "label")},
	} {
		t.Run(sentence, func(t *testing.T) {
			hook := &resourceoverride.Webhook{
				Authz: ask.Grant(editor("ann")...), GlobalNamespace: "global", State: labelledClusters{}, Charts: &judging{},
			}
			o := labels("shop", tc.app)
			o.Spec.Rules[0].Patch[0]["value"] = map[string]any{"a": "${" + tc.variable + "}"}
			if tc.in != nil {
				o.Spec.Rules[0].ClusterTerms = []shipper.OverrideClusterTerm{{Names: tc.in}}
			}
			decision := response.Decision("")
			if tc.want != "" {
				decision = response.Invalid
			}
			ask.CheckRefusal(t, hook.Validate(t.Context(), create("ann", o), &response.Response{}), decision, tc.want)
		})
	}
}

// labelledClusters are those of known, of which eu-2 has one property, eu-1 another one and a label, and us-1 nothing.
type labelledClusters struct{ known }

func (l labelledClusters) Clusters() []shipper.Cluster {
	out := l.known.Clusters()
	out[0].Labels, out[0].Spec.Properties = map[string]string{"env": "a"}, map[string]string{"cost": "1", "disks": "2"}
	out[1].Status.Properties = map[string]string{"cost": "3"}
	return out
}
