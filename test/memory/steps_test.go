// SPDX-License-Identifier: Apache-2.0

//nolint:lll // each request of the table is one line
package memory

import (
	"net/http"
	"slices"
)

// Methods, short enough for a table.
const (
	get, post, put, patch, del = http.MethodGet, http.MethodPost, http.MethodPut, http.MethodPatch, http.MethodDelete
)

// Paths of the kinds that the table writes.
const (
	cms   = "/api/v1/ns/configmaps"
	apis  = "/apis/shipper.booking.com/v1alpha1"
	rbs   = apis + "/ns/rolloutblocks"
	apps  = apis + "/ns/applications"
	rels  = apis + "/ns/releases"
	ntfs  = apis + "/ns/notifications"
	appr  = apis + "/ns/approvals"
	clus  = apis + "/clusters"
	svcs  = "/api/v1/ns/services"
	deps  = "/apis/apps/v1/ns/deployments"
	stss  = "/apis/apps/v1/ns/statefulsets"
	crons = "/apis/batch/v1/ns/cronjobs"
)

// steps are all requests, in order: each continues with what those before it left.
func steps() []step {
	return slices.Concat(
		creating(), updating(), patching(), applying(), applyingLists(), customs(), statuses(), deleting(), owning(), listing(), watching(),
		refusing(), defaulted(), revisions(), discovering(), clients(), ending(),
	)
}

func creating() []step {
	return []step{
		{name: "a Namespace is created", method: post, path: "/api/v1/namespaces", body: `{"metadata":{"name":"differential"}}`},
		{name: "a watch of all ConfigMaps of the namespace starts", method: get, path: cms + "?watch=1&labelSelector=watched%3Dyes", watch: "labelled"},
		{name: "a ConfigMap is created", method: post, path: cms, body: `{"metadata":{"name":"a"},"data":{"x":"1"}}`, save: "a"},
		{name: "a ConfigMap exists already", method: post, path: cms, body: `{"metadata":{"name":"a"},"data":{"x":"1"}}`},
		{name: "a ConfigMap is read", method: get, path: cms + "/a"},
		{name: "a ConfigMap is missing", method: get, path: cms + "/none"},
		{name: "a name is generated", method: post, path: cms, body: `{"metadata":{"generateName":"generated-"}}`},
		{name: "a name is missing", method: post, path: cms, body: `{"metadata":{}}`},
		{name: "a name is invalid", method: post, path: cms, body: `{"metadata":{"name":"A_b"}}`},
		{name: "metadata that the server owns is ignored", method: post, path: cms,
			body: `{"metadata":{"name":"b","uid":"x","creationTimestamp":"2020-01-01T00:00:00Z","generation":7,"deletionTimestamp":"2020-01-01T00:00:00Z","selfLink":"x"}}`},
		{name: "a resourceVersion is given at creation", method: post, path: cms, body: `{"metadata":{"name":"c","resourceVersion":"7"}}`},
		{name: "a namespace that is not the one of the path", method: post, path: cms, body: `{"metadata":{"name":"c","namespace":"other"}}`},
		{name: "a kind that is not the one of the path", method: post, path: cms, body: `{"kind":"Secret","apiVersion":"v1","metadata":{"name":"c"}}`},
		{name: "a version that is not the one of the path", method: post, path: cms, body: `{"kind":"ConfigMap","apiVersion":"v2","metadata":{"name":"c"}}`},
		{name: "a body that is no JSON", method: post, path: cms, body: `{"metadata":`},
		{name: "a body of the wrong type", method: post, path: cms, body: `{"metadata":{"name":"c"},"data":{"x":1}}`},
		{name: "a namespace that does not exist", method: post, path: "/api/v1/namespaces/nowhere/configmaps", body: `{"metadata":{"name":"a"}}`},
		{name: "a dry run of a creation", method: post, path: cms + "?dryRun=All", body: `{"metadata":{"name":"dry"},"data":{"x":"1"}}`},
		{name: "a dry run has stored nothing", method: get, path: cms + "/dry"},
		{name: "a dry run of another kind", method: post, path: cms + "?dryRun=Some", body: `{"metadata":{"name":"dry"}}`},
		{name: "a dry run of a creation that exists", method: post, path: cms + "?dryRun=All", body: `{"metadata":{"name":"a"}}`},
		{name: "an unknown field is dropped by default", method: post, path: cms + "?fieldValidation=Ignore", body: `{"metadata":{"name":"u1"},"foo":1}`},
		{name: "an unknown field is warned of", method: post, path: cms + "?fieldValidation=Warn", body: `{"metadata":{"name":"u2"},"foo":1,"foo":2}`},
		{name: "an unknown field is refused", method: post, path: cms + "?fieldValidation=Strict", body: `{"metadata":{"name":"u3"},"foo":1}`},
		{name: "a fieldManager is given", method: post, path: cms + "?fieldManager=me", body: `{"metadata":{"name":"m","labels":{"l":"1"}},"data":{"x":"1"},"binaryData":{"b":"AA=="}}`},
		{name: "YAML is created", method: post, path: cms, body: "metadata:\n  name: yaml\ndata:\n  x: '1'\n", kind: "yaml"},
		{name: "a Secret's stringData is stored as data", method: post, path: "/api/v1/ns/secrets", body: `{"metadata":{"name":"s"},"stringData":{"x":"1"}}`},
		{name: "a Secret of a type", method: post, path: "/api/v1/ns/secrets", body: `{"metadata":{"name":"typed"},"type":"example.com/x"}`},
		{name: "a Secret's type is immutable", method: patch, path: "/api/v1/ns/secrets/typed", kind: "merge", body: `{"type":"other"}`},
		{name: "POST of a named object", method: post, path: cms + "/a", body: `{"metadata":{"name":"a"}}`},
	}
}

func updating() []step {
	return []step{
		{name: "an update without a version", method: put, path: cms + "/a", body: `{"metadata":{"name":"a"},"data":{"x":"2"}}`, save: "a2"},
		{name: "an update of an old version", method: put, path: cms + "/a", body: `{"metadata":{"name":"a","resourceVersion":"$rv(a)"},"data":{"x":"3"}}`},
		{name: "an update of the version", method: put, path: cms + "/a", body: `{"metadata":{"name":"a","resourceVersion":"$rv(a2)"},"data":{"x":"3"}}`, save: "a3"},
		{name: "an update that changes nothing", method: put, path: cms + "/a", body: `{"metadata":{"name":"a"},"data":{"x":"3"}}`},
		{name: "an update of another uid", method: put, path: cms + "/a", body: `{"metadata":{"name":"a","uid":"7b2d1d3e-0000-4000-8000-000000000000"},"data":{"x":"4"}}`},
		{name: "an update of the uid", method: put, path: cms + "/a", body: `{"metadata":{"name":"a","uid":"$uid(a)"},"data":{"x":"4"}}`},
		{name: "an update of what is missing", method: put, path: cms + "/none", body: `{"metadata":{"name":"none"}}`},
		{name: "an update under another name", method: put, path: cms + "/a", body: `{"metadata":{"name":"other"}}`},
		{name: "an update without a name", method: put, path: cms + "/a", body: `{"data":{"x":"5"}}`},
		{name: "a dry run of an update", method: put, path: cms + "/a?dryRun=All", body: `{"metadata":{"name":"a"},"data":{"x":"6"}}`},
		{name: "an update by another manager", method: put, path: cms + "/a?fieldManager=two", body: `{"metadata":{"name":"a"},"data":{"x":"5","y":"1"}}`},
		{name: "an update that removes managed fields", method: put, path: cms + "/a", body: `{"metadata":{"name":"a","managedFields":[{}]},"data":{"x":"5","y":"1"}}`},
		{name: "labels are invalid", method: put, path: cms + "/a", body: `{"metadata":{"name":"a","labels":{"-":"/"}}}`},
		{name: "a Lease is created by its update", method: put, path: "/apis/coordination.k8s.io/v1/ns/leases/l", body: `{"metadata":{"name":"l"},"spec":{"holderIdentity":"me","leaseDurationSeconds":3}}`},
		{name: "a Lease is updated without a version", method: put, path: "/apis/coordination.k8s.io/v1/ns/leases/l", body: `{"metadata":{"name":"l"},"spec":{"holderIdentity":"you","leaseDurationSeconds":3}}`},
		{name: "an immutable ConfigMap is created", method: post, path: cms, body: `{"metadata":{"name":"fixed"},"immutable":true,"data":{"x":"1"}}`},
		{name: "an immutable ConfigMap is changed", method: patch, path: cms + "/fixed", kind: "merge", body: `{"data":{"x":"2"}}`},
	}
}

func patching() []step {
	return []step{
		{name: "a merge patch", method: patch, path: cms + "/a", kind: "merge", body: `{"metadata":{"labels":{"l":"1"}},"data":{"y":null,"z":"1"}}`},
		{name: "a merge patch that changes nothing", method: patch, path: cms + "/a", kind: "merge", body: `{"data":{"z":"1"}}`},
		{name: "a merge patch of an old version", method: patch, path: cms + "/a", kind: "merge", body: `{"metadata":{"resourceVersion":"$rv(a)"},"data":{"z":"2"}}`},
		{name: "a merge patch of another uid", method: patch, path: cms + "/a", kind: "merge", body: `{"metadata":{"uid":"7b2d1d3e-0000-4000-8000-000000000000"},"data":{"z":"2"}}`},
		{name: "a merge patch of what is missing", method: patch, path: cms + "/none", kind: "merge", body: `{}`},
		{name: "a merge patch that is no JSON", method: patch, path: cms + "/a", kind: "merge", body: `{`},
		{name: "a merge patch of the name", method: patch, path: cms + "/a", kind: "merge", body: `{"metadata":{"name":"other"}}`},
		{name: "a merge patch of the wrong type", method: patch, path: cms + "/a", kind: "merge", body: `{"data":7}`},
		{name: "a JSON patch", method: patch, path: cms + "/a", kind: "json", body: `[{"op":"add","path":"/data/j","value":"1"},{"op":"test","path":"/data/j","value":"1"}]`},
		{name: "a JSON patch whose test fails", method: patch, path: cms + "/a", kind: "json", body: `[{"op":"test","path":"/data/j","value":"2"}]`},
		{name: "a JSON patch of a missing path", method: patch, path: cms + "/a", kind: "json", body: `[{"op":"remove","path":"/data/none"}]`},
		{name: "a JSON patch that is no list", method: patch, path: cms + "/a", kind: "json", body: `{}`},
		{name: "a strategic patch", method: patch, path: cms + "/a", kind: "strategic", body: `{"data":{"j":null,"s":"1"}}`},
		{name: "a strategic patch of finalizers adds to them", method: patch, path: cms + "/a", kind: "strategic", body: `{"metadata":{"finalizers":["example.com/a"]}}`},
		{name: "a strategic patch deletes from finalizers", method: patch, path: cms + "/a", kind: "strategic", body: `{"metadata":{"$deleteFromPrimitiveList/finalizers":["example.com/a"]}}`},
		{name: "a patch of an unknown kind", method: patch, path: cms + "/a", body: `{}`},
		{name: "a dry run of a patch", method: patch, path: cms + "/a?dryRun=All", kind: "merge", body: `{"data":{"z":"9"}}`},
		{name: "a patch with force that is no apply", method: patch, path: cms + "/a?force=true", kind: "merge", body: `{"data":{"z":"9"}}`},
		{name: "a strategic patch of a custom resource", method: patch, path: clus + "/none", kind: "strategic", body: `{}`},
		{name: "what patches left", method: get, path: cms + "/a"},
	}
}

func applying() []step {
	const of = cms + "/applied?fieldManager="
	head := `{"apiVersion":"v1","kind":"ConfigMap","metadata":{"name":"applied"`
	return []step{
		{name: "an apply creates", method: patch, path: of + "one", kind: "apply", body: head + `,"labels":{"l":"1"}},"data":{"x":"1","y":"1"}}`},
		{name: "an apply that changes nothing", method: patch, path: of + "one", kind: "apply", body: head + `,"labels":{"l":"1"}},"data":{"x":"1","y":"1"}}`},
		{name: "an apply without a manager", method: patch, path: cms + "/applied", kind: "apply", body: head + `}}`},
		{name: "an apply conflicts", method: patch, path: of + "two", kind: "apply", body: head + `},"data":{"x":"2"}}`},
		{name: "an apply of the same value is shared", method: patch, path: of + "two", kind: "apply", body: head + `},"data":{"x":"1"}}`},
		{name: "a shared value is changed", method: patch, path: of + "one", kind: "apply", body: head + `},"data":{"x":"3","y":"1"}}`},
		{name: "an apply is forced", method: patch, path: of + "two&force=true", kind: "apply", body: head + `},"data":{"x":"2"}}`},
		{name: "an apply removes what it no longer has", method: patch, path: of + "one", kind: "apply", body: head + `}}`},
		{name: "an update takes a field over", method: patch, path: cms + "/applied?fieldManager=three", kind: "merge", body: `{"data":{"x":"4"}}`},
		{name: "an apply conflicts with an update", method: patch, path: of + "two", kind: "apply", body: head + `},"data":{"x":"2"}}`},
		{name: "an apply of YAML", method: patch, path: of + "two&force=true", kind: "apply", body: "apiVersion: v1\nkind: ConfigMap\nmetadata:\n  name: applied\ndata:\n  x: '5'\n"},
		{name: "an apply of another name", method: patch, path: of + "one", kind: "apply", body: `{"apiVersion":"v1","kind":"ConfigMap","metadata":{"name":"other"}}`},
		{name: "an apply without a kind", method: patch, path: of + "one", kind: "apply", body: `{"metadata":{"name":"applied"}}`},
		{name: "an apply of an unknown field", method: patch, path: of + "one", kind: "apply", body: head + `},"foo":"1"}`},
		{name: "an apply with managed fields", method: patch, path: of + "one", kind: "apply", body: head + `,"managedFields":[{"manager":"x","operation":"Apply","apiVersion":"v1"}]}}`},
		{name: "an apply of an old version", method: patch, path: of + "one", kind: "apply", body: head + `,"resourceVersion":"$rv(a)"},"data":{"w":"1"}}`},
		{name: "an apply of a version creates nothing", method: patch, path: cms + "/absent?fieldManager=one", kind: "apply", body: `{"apiVersion":"v1","kind":"ConfigMap","metadata":{"name":"absent","resourceVersion":"$rv(a)"}}`},
		{name: "an apply of a uid creates nothing", method: patch, path: cms + "/absent?fieldManager=one", kind: "apply", body: `{"apiVersion":"v1","kind":"ConfigMap","metadata":{"name":"absent","uid":"$uid(a)"}}`},
		{name: "a dry run of an apply", method: patch, path: of + "one&dryRun=All", kind: "apply", body: head + `},"data":{"w":"1"}}`},
		{name: "an apply by a user agent's name is none", method: patch, path: cms + "/applied?force=true", kind: "apply", body: head + `}}`},
		{name: "what applies left", method: get, path: cms + "/applied"},
		{name: "an apply in a namespace that does not exist", method: patch, path: "/api/v1/namespaces/nowhere/configmaps/a?fieldManager=one", kind: "apply", body: `{"apiVersion":"v1","kind":"ConfigMap","metadata":{"name":"a"}}`},
	}
}

func applyingLists() []step {
	const of = svcs + "/svc?fieldManager="
	head := `{"apiVersion":"v1","kind":"Service","metadata":{"name":"svc"},"spec":{`
	cron := `{"apiVersion":"batch/v1","kind":"CronJob","metadata":{"name":"cron"},"spec":{"suspend":true,"schedule":"0 0 1 1 *","jobTemplate":{"spec":{"template":{"spec":{"restartPolicy":"Never","containers":[`
	tail := `]}}}}}}`
	return []step{
		{name: "a Service is applied", method: patch, path: of + "one", kind: "apply", body: head + `"selector":{"app":"x"},"ports":[{"name":"http","port":80}]}}`},
		{name: "another manager adds a port", method: patch, path: of + "two", kind: "apply", body: head + `"ports":[{"name":"https","port":443,"targetPort":"tls"}]}}`},
		{name: "a manager changes another one's port", method: patch, path: of + "two", kind: "apply", body: head + `"ports":[{"name":"plain","port":80},{"name":"https","port":443,"targetPort":"tls"}]}}`},
		{name: "a manager removes its port", method: patch, path: of + "one", kind: "apply", body: head + `"selector":{"app":"x"}}}`},
		{name: "a selector is merged", method: patch, path: of + "three", kind: "apply", body: head + `"selector":{"pod":"y"}}}`},
		{name: "a strategic patch of ports merges by key", method: patch, path: svcs + "/svc", kind: "strategic", body: `{"spec":{"ports":[{"name":"more","port":81}]}}`},
		{name: "a strategic patch deletes a port", method: patch, path: svcs + "/svc", kind: "strategic", body: `{"spec":{"ports":[{"port":81,"$patch":"delete"}]}}`},
		{name: "an update without a cluster IP keeps it", method: put, path: svcs + "/svc", body: `{"metadata":{"name":"svc"},"spec":{"selector":{"app":"z"},"ports":[{"name":"http","port":80}]}}`},
		{name: "a headless Service", method: post, path: svcs, body: `{"metadata":{"name":"headless"},"spec":{"clusterIP":"None","selector":{"a":"b"}}}`},
		{name: "a CronJob is applied", method: patch, path: crons + "/cron?fieldManager=one", kind: "apply", body: cron + `{"name":"a","image":"a:1","env":[{"name":"X","value":"1"}]}` + tail},
		{name: "another manager adds to a container", method: patch, path: crons + "/cron?fieldManager=two", kind: "apply", body: cron + `{"name":"a","env":[{"name":"Y","value":"1"}]},{"name":"b","image":"b"}` + tail},
		{name: "a manager conflicts in a container", method: patch, path: crons + "/cron?fieldManager=two", kind: "apply", body: cron + `{"name":"a","image":"a:2"},{"name":"b","image":"b"}` + tail},
		{name: "a variable that its manager no longer has is removed", method: patch, path: crons + "/cron?fieldManager=one", kind: "apply", body: cron + `{"name":"a","image":"a:1"}` + tail},
		{name: "the generation of a spec that changed", method: patch, path: crons + "/cron", kind: "merge", body: `{"spec":{"schedule":"0 0 2 1 *"}}`},
		{name: "the generation of labels that changed", method: patch, path: crons + "/cron", kind: "merge", body: `{"metadata":{"labels":{"a":"b"}}}`},
	}
}
