// SPDX-License-Identifier: Apache-2.0

//nolint:lll // each request of the table is one line
package memory

import (
	"context"
	"fmt"
	"slices"
	"strings"

	appsv1 "k8s.io/api/apps/v1"
	authorizationv1 "k8s.io/api/authorization/v1"
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/client-go/discovery"
	"k8s.io/client-go/dynamic"
	"k8s.io/client-go/kubernetes"
	"k8s.io/client-go/metadata"
	"k8s.io/client-go/rest"
)

// Headers of requests for metadata alone.
const (
	metadataOf     = "Accept: application/json;as=PartialObjectMetadata;g=meta.k8s.io;v=v1"
	metadataOfList = "Accept: application/json;as=PartialObjectMetadataList;g=meta.k8s.io;v=v1"
)

func listing() []step {
	named := func(name, more string) step {
		return step{name: "an object of lists " + name, method: post, path: "/api/v1/ns/secrets", body: `{"metadata":{"name":"` + name + `","labels":{"n":"` + name + `","list":"yes"}}` + more + `}`}
	}
	const secrets = "/api/v1/ns/secrets"
	return []step{
		named("l1", ""), named("l2", `,"type":"example.com/l"`), named("l3", ""),
		{name: "a list by a label", method: get, path: secrets + "?labelSelector=list%3Dyes", save: "list"},
		{name: "a list by a set of labels", method: get, path: secrets + "?labelSelector=n+in+(l1,l3)"},
		{name: "a list by a label that is absent", method: get, path: secrets + "?labelSelector=list,n!%3Dl1"},
		{name: "a label selector that is invalid", method: get, path: secrets + "?labelSelector=a%3D%3D%3Db"},
		{name: "a list by name", method: get, path: secrets + "?fieldSelector=metadata.name%3Dl2"},
		{name: "a list by namespace", method: get, path: "/api/v1/secrets?fieldSelector=metadata.namespace%3Ddifferential&labelSelector=list"},
		{name: "a list by a field of the kind", method: get, path: secrets + "?labelSelector=list&fieldSelector=type%3Dexample.com/l"},
		{name: "a list by all but a field", method: get, path: secrets + "?labelSelector=list&fieldSelector=type!%3Dexample.com/l"},
		{name: "a list by a field that is not selectable", method: get, path: secrets + "?fieldSelector=data%3Dx"},
		{name: "a list of custom resources by a field that is not selectable", method: get, path: rbs + "?fieldSelector=spec.message%3Dx"},
		{name: "a list of ConfigMaps by a field that is not selectable", method: get, path: cms + "?fieldSelector=data%3Dx"},
		{name: "a field selector that is invalid", method: get, path: secrets + "?fieldSelector=x"},
		{name: "a list of custom resources by name", method: get, path: rbs + "?fieldSelector=metadata.name%3Dblock"},
		{name: "the first page", method: get, path: secrets + "?labelSelector=list&limit=2"},
		{name: "an object changes between pages", method: del, path: secrets + "/l3"},
		{name: "the last page has the version of the first", method: get, path: secrets + "?labelSelector=list&limit=2&continue=$continue"},
		{name: "a page that is everything", method: get, path: secrets + "?labelSelector=list&limit=7"},
		{name: "a page of custom resources counts the rest", method: get, path: rbs + "?limit=1"},
		{name: "the next page of custom resources", method: get, path: rbs + "?limit=1&continue=$continue"},
		{name: "a page that does not exist", method: get, path: secrets + "?limit=1&continue=nonsense"},
		{name: "a list of any version", method: get, path: rbs + "?resourceVersion=0"},
		{name: "a list of a version that is no number", method: get, path: rbs + "?resourceVersion=x"},
		{name: "a list with a match of no version", method: get, path: rbs + "?resourceVersionMatch=Exact"},
		{name: "metadata of an object", method: get, path: rbs + "/block", header: metadataOf},
		{name: "metadata of a list", method: get, path: rbs + "?fieldSelector=metadata.name%3Dblock", header: metadataOfList},
		{name: "metadata of a list of Secrets", method: get, path: secrets + "?labelSelector=list", header: metadataOfList},
		{name: "metadata of an object where there is a list", method: get, path: rbs, header: metadataOf},
		{name: "metadata of a list where there is an object", method: get, path: rbs + "/block", header: metadataOfList},
		{name: "metadata of a patched object", method: patch, path: rbs + "/block", kind: "merge", body: `{"metadata":{"annotations":{"a":"b"}}}`, header: metadataOf},
		{name: "a list of a namespace that does not exist", method: get, path: "/api/v1/namespaces/nowhere/secrets"},
	}
}

func watching() []step {
	secret := func(name, method, labels, path string) step {
		st := step{name: name, method: method, path: "/api/v1/ns/secrets" + path, body: `{"metadata":{"name":"w","labels":` + labels + `}}`}
		if method == patch {
			st.kind, st.body = "merge", `{"metadata":{"labels":`+labels+`}}`
		}
		return st
	}
	const secrets = "/api/v1/ns/secrets"
	end := func(name string) step {
		return step{name: "the events of a watch " + name, watch: name, until: "marker"}
	}
	return []step{
		secret("an object that is watched", post, `{"w":"yes"}`, ""),
		{name: "the version of a list", method: get, path: secrets + "?labelSelector=w", save: "from"},
		{name: "a watch of a label starts", method: get, path: secrets + "?watch=1&labelSelector=w%3Dyes&resourceVersion=$rv(from)", watch: "by label"},
		{name: "a watch of a name starts", method: get, path: secrets + "?watch=1&fieldSelector=metadata.name!%3Dother&labelSelector=w&resourceVersion=$rv(from)", watch: "by field"},
		{name: "a watch of metadata starts", method: get, path: secrets + "?watch=1&labelSelector=w&resourceVersion=$rv(from)", watch: "of metadata", header: metadataOf},
		{name: "a watch without a version starts", method: get, path: secrets + "?watch=1&labelSelector=w", watch: "of everything"},
		{name: "a watch with initial events starts", method: get, path: secrets + "?watch=1&labelSelector=w&sendInitialEvents=true&resourceVersionMatch=NotOlderThan&allowWatchBookmarks=true", watch: "with initial events"},
		{name: "initial events end with a bookmark", watch: "with initial events", until: "bookmark"},
		{name: "a watch of custom resources starts", method: get, path: rbs + "?watch=1&fieldSelector=metadata.name!%3Dblock&resourceVersion=$rv(from)", watch: "of custom resources"},
		{name: "initial events without a match are refused", method: get, path: secrets + "?watch=1&sendInitialEvents=true"},
		{name: "a watch of a version that is no number", method: get, path: secrets + "?watch=1&resourceVersion=x"},
		secret("it changes", patch, `{"w":"yes","x":"1"}`, "/w"),
		secret("it changes nothing", patch, `{"w":"yes","x":"1"}`, "/w"),
		secret("it leaves the selector", patch, `{"w":"no"}`, "/w"),
		secret("it returns to the selector", patch, `{"w":"yes"}`, "/w"),
		{name: "another object appears", method: post, path: secrets, body: `{"metadata":{"name":"other","labels":{"w":"yes"},"finalizers":["example.com/keep"]}}`},
		{name: "another object is marked for deletion", method: del, path: secrets + "/other"},
		{name: "another object is released", method: patch, path: secrets + "/other", kind: "merge", body: `{"metadata":{"finalizers":null}}`},
		{name: "it is deleted", method: del, path: secrets + "/w"},
		{name: "a custom resource that is watched", method: post, path: rbs, body: head("RolloutBlock", "w") + `},"spec":{"message":"x"}}`},
		{name: "a status that is watched", method: patch, path: rbs + "/w/status", kind: "merge", body: `{"status":{"active":true}}`},
		{name: "a custom resource that is watched is deleted", method: del, path: rbs + "/w"},
		{name: "the last custom resource that is watched", method: post, path: rbs, body: head("RolloutBlock", "marker") + `},"spec":{"message":"x"}}`},
		{name: "the last object that is watched", method: post, path: secrets, body: `{"metadata":{"name":"marker","labels":{"w":"yes"}}}`},
		end("by label"), end("by field"), end("of metadata"), end("of everything"), end("with initial events"), end("of custom resources"),
		{name: "the last ConfigMap that is watched", method: post, path: cms, body: `{"metadata":{"name":"marker","labels":{"watched":"yes"}}}`},
		end("labelled"),
	}
}

func refusing() []step {
	return []step{
		{name: "a path that does not exist", method: get, path: "/apis/nothing.example.com/v1/ns/things"},
		{name: "PUT of a collection", method: put, path: cms, body: `{}`},
		{name: "PATCH of a collection", method: patch, path: cms, kind: "merge", body: `{}`},
		{name: "a media type that is not known", method: post, path: cms, body: `x`, kind: "json"},
		{name: "a fieldManager that is too long", method: post, path: cms + "?fieldManager=" + fmt.Sprintf("%0129d", 0), body: `{"metadata":{"name":"x"}}`},
		{name: "a fieldValidation that does not exist", method: post, path: cms + "?fieldValidation=Maybe", body: `{"metadata":{"name":"x"}}`},
	}
}

func defaulted() []step {
	template := `"template":{"metadata":{"labels":{"a":"b"}},"spec":{"containers":[{"name":"c","image":"nginx","ports":[{"containerPort":80}],` +
		`"env":[{"name":"N","valueFrom":{"fieldRef":{"fieldPath":"metadata.name"}}}],"readinessProbe":{"httpGet":{"port":80}},` +
		`"volumeMounts":[{"name":"v","mountPath":"/v"}]}],"initContainers":[{"name":"i","image":"busybox@sha256:` + fmt.Sprintf("%064d", 0) + `"}],` +
		`"volumes":[{"name":"v","configMap":{"name":"x"}},{"name":"e"},{"name":"s","secret":{"secretName":"s"}}]}}`
	return []step{
		{name: "a Deployment is defaulted", method: post, path: deps + "?dryRun=All", body: `{"metadata":{"name":"d"},"spec":{"selector":{"matchLabels":{"a":"b"}},` + template + `}}`},
		{name: "a Deployment that is recreated is defaulted", method: post, path: deps + "?dryRun=All", body: `{"metadata":{"name":"d"},"spec":{"replicas":0,"strategy":{"type":"Recreate"},"selector":{"matchLabels":{"a":"b"}},` + template + `}}`},
		{name: "a Deployment is applied", method: patch, path: deps + "/d?dryRun=All&fieldManager=one", kind: "apply", body: `{"apiVersion":"apps/v1","kind":"Deployment","metadata":{"name":"d"},"spec":{"selector":{"matchLabels":{"a":"b"}},` + template + `}}`},
		{name: "a StatefulSet is defaulted", method: post, path: stss + "?dryRun=All", body: `{"metadata":{"name":"d"},"spec":{"selector":{"matchLabels":{"a":"b"}},` + template + `}}`},
		{name: "a StatefulSet is applied", method: patch, path: stss + "/d?dryRun=All&fieldManager=one", kind: "apply", body: `{"apiVersion":"apps/v1","kind":"StatefulSet","metadata":{"name":"d"},"spec":{"updateStrategy":{"rollingUpdate":{"partition":2}},"selector":{"matchLabels":{"a":"b"}},` + template + `}}`},
		{name: "an eviction of a Pod that is missing", method: post, path: "/api/v1/ns/pods/none/eviction", body: `{"apiVersion":"policy/v1","kind":"Eviction","metadata":{"name":"none"}}`},
		{name: "a Job is defaulted", method: post, path: "/apis/batch/v1/ns/jobs?dryRun=All", body: `{"metadata":{"name":"j"},"spec":{"template":{"spec":{"restartPolicy":"Never","containers":[{"name":"c","image":"x:latest"}]}}}}`},
		{name: "a Service is defaulted", method: post, path: svcs + "?dryRun=All", body: `{"metadata":{"name":"d"},"spec":{"ports":[{"port":80}]}}`},
		{name: "a Service outside of the cluster", method: post, path: svcs + "?dryRun=All", body: `{"metadata":{"name":"d"},"spec":{"type":"ExternalName","externalName":"x.example.com"}}`},
		{name: "an EndpointSlice is defaulted", method: post, path: "/apis/discovery.k8s.io/v1/ns/endpointslices?dryRun=All", body: `{"metadata":{"name":"d"},"addressType":"IPv4","endpoints":[],"ports":[{"port":80}]}`},
		{name: "an Ingress is stored", method: post, path: "/apis/networking.k8s.io/v1/ns/ingresses?dryRun=All", body: `{"metadata":{"name":"d"},"spec":{"defaultBackend":{"service":{"name":"x","port":{"number":80}}}}}`},
		{name: "a Role is stored", method: post, path: "/apis/rbac.authorization.k8s.io/v1/ns/roles?dryRun=All", body: `{"metadata":{"name":"d"},"rules":[{"apiGroups":[""],"resources":["pods"],"verbs":["get"]}]}`},
	}
}

// servedIn returns the resources that both servers have, in one order.
func servedIn(group string) func(context.Context, *rest.Config, string) (any, error) {
	return func(_ context.Context, c *rest.Config, _ string) (any, error) {
		d, err := discovery.NewDiscoveryClientForConfig(c)
		if err != nil {
			return nil, err
		}
		list, err := d.ServerResourcesForGroupVersion(group)
		if err != nil {
			return nil, err
		}
		for i := range list.APIResources {
			list.APIResources[i].StorageVersionHash = ""
		}
		slices.SortFunc(list.APIResources, func(a, b metav1.APIResource) int { return strings.Compare(a.Name, b.Name) })
		return list, nil
	}
}

// revisions are the requests for what Shipyards were.
func revisions() []step {
	const crs = "/apis/apps/v1/ns/controllerrevisions"
	body := `{"apiVersion":"apps/v1","kind":"ControllerRevision","metadata":{"name":"shop-1","labels":{"shipper.booking.com/shipyard":"shop"}},"data":{"stages":[{"name":"qa","maxConcurrency":2}]},"revision":3}`
	return []step{
		{name: "a ControllerRevision is created", method: post, path: crs, body: body, save: "revision"},
		{name: "a ControllerRevision exists already", method: post, path: crs, body: body},
		{name: "a ControllerRevision is read", method: get, path: crs + "/shop-1"},
		{name: "a ControllerRevision is missing", method: get, path: crs + "/shop-2"},
		{name: "the metadata of ControllerRevisions by a label", method: get, path: crs + "?labelSelector=shipper.booking.com/shipyard%3Dshop", header: metadataOfList},
		{name: "a deletion of another ControllerRevision", method: del, path: crs + "/shop-1", body: `{"preconditions":{"uid":"7b2d1d3e-0000-4000-8000-000000000000"}}`},
		{name: "a ControllerRevision is deleted", method: del, path: crs + "/shop-1", body: `{"preconditions":{"uid":"$uid(revision)"}}`},
	}
}

func discovering() []step {
	return []step{
		{name: "the kinds of Shipper", get: servedIn("shipper.booking.com/v1alpha1")},
		{name: "the kinds of a group that does not exist", get: servedIn("nothing.example.com/v1")},
		{name: "the group of Shipper", method: get, path: "/apis/shipper.booking.com"},
		{name: "core versions", get: func(_ context.Context, c *rest.Config, _ string) (any, error) {
			d, err := discovery.NewDiscoveryClientForConfig(c)
			if err != nil {
				return nil, err
			}
			_, lists, err := d.ServerGroupsAndResources()
			var found []string
			for _, l := range lists {
				if l.GroupVersion == "v1" || l.GroupVersion == "apps/v1" || l.GroupVersion == "shipper.booking.com/v1alpha1" {
					found = append(found, l.GroupVersion)
				}
			}
			slices.Sort(found)
			return found, err
		}},
	}
}

// clients send requests as Shipper's clients do: typed ones in protobuf, dynamic ones and those of metadata.
func clients() []step {
	typed := func(do func(context.Context, *kubernetes.Clientset, string) (any, error)) func(context.Context, *rest.Config, string) (any, error) {
		return func(ctx context.Context, c *rest.Config, namespace string) (any, error) {
			c = rest.CopyConfig(c)
			c.ContentType, c.AcceptContentTypes = "application/vnd.kubernetes.protobuf", "application/vnd.kubernetes.protobuf,application/json"
			set, err := kubernetes.NewForConfig(c)
			if err != nil {
				return nil, err
			}
			return do(ctx, set, namespace)
		}
	}
	cm := &corev1.ConfigMap{ObjectMeta: metav1.ObjectMeta{Name: "typed", Labels: map[string]string{"a": "b"}}, Data: map[string]string{"x": "1"}}
	blocks := schema.GroupVersionResource{Group: "shipper.booking.com", Version: "v1alpha1", Resource: "rolloutblocks"}
	return []step{
		{name: "a typed client creates", get: typed(func(ctx context.Context, c *kubernetes.Clientset, ns string) (any, error) {
			return c.CoreV1().ConfigMaps(ns).Create(ctx, cm.DeepCopy(), metav1.CreateOptions{FieldManager: "typed"})
		})},
		{name: "a typed client creates again", get: typed(func(ctx context.Context, c *kubernetes.Clientset, ns string) (any, error) {
			return c.CoreV1().ConfigMaps(ns).Create(ctx, cm.DeepCopy(), metav1.CreateOptions{})
		})},
		{name: "a typed client updates", get: typed(func(ctx context.Context, c *kubernetes.Clientset, ns string) (any, error) {
			now, err := c.CoreV1().ConfigMaps(ns).Get(ctx, "typed", metav1.GetOptions{})
			if err != nil {
				return nil, err
			}
			now.Data["x"] = "2"
			return c.CoreV1().ConfigMaps(ns).Update(ctx, now, metav1.UpdateOptions{})
		})},
		{name: "a typed client patches", get: typed(func(ctx context.Context, c *kubernetes.Clientset, ns string) (any, error) {
			return c.CoreV1().ConfigMaps(ns).Patch(ctx, "typed", types.StrategicMergePatchType, []byte(`{"data":{"y":"1"}}`), metav1.PatchOptions{})
		})},
		{name: "a typed client lists", get: typed(func(ctx context.Context, c *kubernetes.Clientset, ns string) (any, error) {
			return c.CoreV1().ConfigMaps(ns).List(ctx, metav1.ListOptions{LabelSelector: "a=b"})
		})},
		{name: "a typed client creates a Deployment", get: typed(func(ctx context.Context, c *kubernetes.Clientset, ns string) (any, error) {
			d := &appsv1.Deployment{ObjectMeta: metav1.ObjectMeta{Name: "d"}}
			d.Spec.Selector = &metav1.LabelSelector{MatchLabels: map[string]string{"a": "b"}}
			d.Spec.Template.Labels = map[string]string{"a": "b"}
			d.Spec.Template.Spec.Containers = []corev1.Container{{Name: "c", Image: "nginx:1"}}
			return c.AppsV1().Deployments(ns).Create(ctx, d, metav1.CreateOptions{DryRun: []string{metav1.DryRunAll}})
		})},
		{name: "a typed client deletes another uid", get: typed(func(ctx context.Context, c *kubernetes.Clientset, ns string) (any, error) {
			uid := types.UID("7b2d1d3e-0000-4000-8000-000000000000")
			return nil, c.CoreV1().ConfigMaps(ns).Delete(ctx, "typed", metav1.DeleteOptions{Preconditions: &metav1.Preconditions{UID: &uid}})
		})},
		{name: "a typed client deletes", get: typed(func(ctx context.Context, c *kubernetes.Clientset, ns string) (any, error) {
			policy := metav1.DeletePropagationBackground
			return nil, c.CoreV1().ConfigMaps(ns).Delete(ctx, "typed", metav1.DeleteOptions{PropagationPolicy: &policy})
		})},
		{name: "a dynamic client lists", get: func(ctx context.Context, c *rest.Config, ns string) (any, error) {
			d, err := dynamic.NewForConfig(c)
			if err != nil {
				return nil, err
			}
			return d.Resource(blocks).Namespace(ns).List(ctx, metav1.ListOptions{FieldSelector: "metadata.name=block"})
		}},
		{name: "a client of metadata lists", get: func(ctx context.Context, c *rest.Config, ns string) (any, error) {
			m, err := metadata.NewForConfig(c)
			if err != nil {
				return nil, err
			}
			list, err := m.Resource(blocks).Namespace(ns).List(ctx, metav1.ListOptions{FieldSelector: "metadata.name=block"})
			if err != nil {
				return nil, err
			}
			for i := range list.Items {
				list.Items[i].TypeMeta = metav1.TypeMeta{} // protobuf has none, and memory responds in JSON
			}
			return list, nil
		}},
		{name: "a client of metadata reads", get: func(ctx context.Context, c *rest.Config, ns string) (any, error) {
			m, err := metadata.NewForConfig(c)
			if err != nil {
				return nil, err
			}
			return m.Resource(corev1.SchemeGroupVersion.WithResource("configmaps")).Namespace(ns).Get(ctx, "a", metav1.GetOptions{})
		}},
		{name: "an access review of oneself", get: typed(func(ctx context.Context, c *kubernetes.Clientset, ns string) (any, error) {
			review := &authorizationv1.SelfSubjectAccessReview{}
			review.Spec.ResourceAttributes = &authorizationv1.ResourceAttributes{Namespace: ns, Verb: "get", Resource: "pods"}
			review, err := c.AuthorizationV1().SelfSubjectAccessReviews().Create(ctx, review, metav1.CreateOptions{})
			if err != nil {
				return nil, err
			}
			return review.Status, nil
		})},
	}
}

func ending() []step {
	return []step{
		{name: "what is left", method: get, path: cms + "?fieldSelector=metadata.name!%3Dkube-root-ca.crt"},
		{name: "what is left of custom resources", method: get, path: rbs},
		{name: "a Namespace holds on to a finalizer", method: post, path: cms, body: `{"metadata":{"name":"last","finalizers":["example.com/keep"]}}`},
		{name: "a Namespace is deleted", method: del, path: "/api/v1/namespaces/differential"},
		{name: "a Namespace that terminates takes no more", method: post, path: cms, body: `{"metadata":{"name":"late"}}`},
		{name: "an apply to a Namespace that terminates", method: patch, path: rbs + "/late?fieldManager=one", kind: "apply", body: head("RolloutBlock", "late") + `},"spec":{"message":"x"}}`},
		{name: "what has no finalizer goes with it", method: get, path: cms + "/a", gone: true},
		{name: "what has a finalizer is marked", method: get, path: cms + "/last", marked: true},
		{name: "what has a finalizer remains", method: get, path: cms + "/last"},
		{name: "the finalizer is removed", method: patch, path: cms + "/last", kind: "merge", body: `{"metadata":{"finalizers":null}}`},
		{name: "the Namespace is gone", method: get, path: "/api/v1/namespaces/differential", gone: true},
	}
}
